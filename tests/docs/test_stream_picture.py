"""The pictures of the first page are what tools/stream_picture.py draws from the recording."""

import re
from xml.etree import ElementTree as ET

import pytest

import deltafold
from corpus import ROOT
from stream_picture import ADVANCE, LAYOUTS, PADDING, RECORDING, Layout, picture, steps_of

BODY = (ROOT / RECORDING).read_bytes()
SVG = "{http://www.w3.org/2000/svg}"

each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.file)


@each_layout
def test_the_picture_is_what_the_script_draws(layout: Layout) -> None:
    drawn = (ROOT / "docs" / layout.file).read_text(encoding="utf-8")
    assert drawn == picture(BODY, layout)


@each_layout
def test_the_picture_shows_every_word_of_the_message_and_loads_nothing(layout: Layout) -> None:
    svg = ET.fromstring(picture(BODY, layout))  # noqa: S314 - our own drawing
    shown = "".join("".join(text.itertext()) for text in svg.iter(f"{SVG}text"))
    message = deltafold.fold(BODY, "anthropic-messages")
    for part in message.parts:
        for word in (getattr(part, "text", None) or part.kind).split():
            assert word in shown
    assert not any("href" in name or name == "src" for node in svg.iter() for name in node.attrib)


@each_layout
def test_each_line_fits_into_its_box(layout: Layout) -> None:
    svg = ET.fromstring(picture(BODY, layout))  # noqa: S314 - our own drawing
    right = {
        box.x: box.left + box.width - PADDING
        for box in (layout.source, layout.deltas, layout.message)
    }
    for text in svg.iter(f"{SVG}text"):
        left, line = int(text.attrib["x"]), "".join(text.itertext()).rstrip()
        assert left + len(line) * ADVANCE <= right[left], line


@each_layout
def test_the_picture_moves_for_those_alone_who_have_not_asked_for_reduced_motion(
    layout: Layout,
) -> None:
    drawn = picture(BODY, layout)
    still, _, moving = drawn.partition("@media (prefers-reduced-motion: no-preference) {")
    moving, _, elements = moving.partition("</style>")
    assert "animation" in moving
    assert "animation" not in still + elements
    assert "opacity" not in still + elements
    assert not re.search(r"<(?:animate|set|script)", drawn)


@each_layout
def test_the_cycle_begins_full_and_every_step_vanishes_and_comes_back(layout: Layout) -> None:
    drawn = picture(BODY, layout)
    frames = re.findall(
        r"@keyframes (s\d+) \{ (\S+)% \{ fill-opacity: 0; \} (\S+)% \{ fill-opacity: 1; \} \}",
        drawn,
    )
    steps = list(steps_of(BODY))
    assert [name for name, _, _ in frames] == [f"s{number}" for number in range(len(steps))]
    (begin,) = {float(vanishes) for _, vanishes, _ in frames}
    times = [float(comes) for _, _, comes in frames]
    assert begin > 0
    assert times == sorted({*times})
    assert times[0] > begin
    assert times[-1] < 100
