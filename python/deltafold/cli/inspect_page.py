"""`deltafold inspect`: a page that shows what a recorded stream did.

In: a file or standard input, and another one to compare it with.  Out: an HTML page, its path on
standard output, and the browser that shows it; the first difference of two recordings.

Law: a page that is not kept is written to a folder of temporary files, readable by its owner only.
"""

import tempfile
import webbrowser
from pathlib import Path

from deltafold.cli.body_input import whole_recording
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain
from deltafold.cli.progress import Progress, open_progress
from deltafold.cli.recorded import UNREADABLE, named
from deltafold.cli.screen import say
from deltafold.contract.names import ProtocolName
from deltafold.inspector import (
    Difference,
    Inspection,
    first_difference,
    inspect_recording,
    is_page,
    make_page,
    read_page,
)
from deltafold.testing.captures.reading import ReadOptions


def inspect_file(
    file: str,
    dialect: ProtocolName | None,
    options: ReadOptions,
    *,
    diff: str | None,
    out: str | None,
    opens: bool,
) -> int:
    """Write the page of a recording, or of two, and show it; returns the exit code.

    Args:
        file: a recording, a response body or an earlier page; `-` is standard input.
        dialect: the protocol of response bodies; None detects it.
        options: the column and the bound of captures.
        diff: another one, which is compared with the first.
        out: the file of the page; None makes a temporary file.
        opens: show the page in a browser.
    """
    code, difference = EXIT_DONE, None
    try:
        names = [name for name in (file, diff) if name is not None]
        with open_progress(named(name).file for name in names) as progress:
            inspections = [_inspected(name, dialect, options, progress) for name in names]
        if len(inspections) > 1:
            difference = first_difference(*inspections)
            code = EXIT_DONE if difference is None else EXIT_ERROR
            _report(inspections, difference)
        path = _write(make_page(inspections, difference), out)
    except UNREADABLE as problem:
        complain(problem, named(file).shown if diff is None else "")
        return EXIT_USAGE
    say(str(path))
    if opens and not webbrowser.open(path.absolute().as_uri()):
        complain("no browser was found; open the page yourself")
    return code


def _inspected(
    file: str, dialect: ProtocolName | None, options: ReadOptions, progress: Progress
) -> Inspection:
    path = Path(file)
    if path.suffix in {".html", ".htm"}:
        content = path.read_bytes()
        if is_page(content):
            # The deltas are those of the version that wrote the page.
            return read_page(content.decode())[0]
    name, found, recording = whole_recording(file, dialect, options, progress)
    return inspect_recording(recording, found, name)


def _report(inspections: list[Inspection], difference: Difference | None) -> None:
    left, right = inspections
    if difference is None:
        say(f"{left.name} and {right.name} have the same deltas")
        return
    sides = (
        (left, difference.left_event, difference.left),
        (right, difference.right_event, difference.right),
    )
    for inspection, event, told in sides:
        place = f"event {event + 1} at byte {inspection.offsets[event]}"
        if event == len(inspection.texts) - 1:
            place = f"the end at byte {inspection.offsets[event]}"
        say(f"{inspection.name} (deltafold {inspection.version}), {place}: {told}")


def _write(page: str, out: str | None) -> Path:
    if out is not None:
        path = Path(out)
        path.write_text(page, encoding="utf-8", newline="")
        return path
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", newline="", prefix="deltafold-", suffix=".html", delete=False
    ) as file:
        file.write(page)
        return Path(file.name)
