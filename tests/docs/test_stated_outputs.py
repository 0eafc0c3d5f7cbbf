"""A stated output is what was printed, and `…` stands for no more than its place in a line."""

from typing import Final

import pytest

from documentation import Block, blocks_of, pages, text_of, with_outputs
from stated_outputs import LONGEST, WIDEST, fault_of, output_of

PRINTED: Final = "\nHigh tide at 17:42. \n\nrun 4c1f took 0.25 s\n"
LONG: Final = "".join(f"line {number}\n" for number in range(LONGEST + 8))


def block(output: str | None, language: str = "python") -> Block:
    return Block("docs/choose.md", 3, "", language, None, None, "print()\n", output)


def is_accepted(output: str | None, printed: str, language: str = "python") -> bool:
    return fault_of(block(output, language), printed, is_needed=True) is None


@pytest.mark.parametrize(
    "output",
    [
        "High tide at 17:42.\n\nrun 4c1f took 0.25 s\n",
        "High tide at 17:42.\n\nrun … took … s\n",
        "High tide at …\n\n… took 0.25 s\n",
    ],
)
def test_an_output_is_what_was_printed(output: str) -> None:
    assert is_accepted(output, PRINTED)


@pytest.mark.parametrize(
    "output",
    [
        "High tide at 17:43.\n\nrun 4c1f took 0.25 s\n",
        "High tide at 17:42.\nrun 4c1f took 0.25 s\n",
        "High tide at 17:42.\n\nrun 4c1f took 0.25 s\nAnd more.\n",
        "High tide at 17:42.\n",
        "run 4c1f took 0.25 s\n\nHigh tide at 17:42.\n",
        "high tide at 17:42.\n\nrun 4c1f took 0.25 s\n",
        "High tide at 17:42. …\n\nrun 4c1f took 0.25 s\n",  # stands for one character at least
        "High tide … took 0.25 s\n",  # and for those of one line
        "…\n\nrun 4c1f took 0.25 s\n",  # and for no whole line
        "High tide at 17:42.\n…\nrun 4c1f took 0.25 s\n",
        "High tide at 17:42.\n…\n",
        "…\n",
        "… …\n\n… …\n",
        "High tide at .......\n\nrun .... took .... s\n",  # a pattern of no other language
        "",
        None,
    ],
)
def test_another_output_is_a_fault(output: str | None) -> None:
    assert not is_accepted(output, PRINTED)
    assert not is_accepted(output, PRINTED, "sh")


def test_only_a_block_that_prints_has_an_output() -> None:
    assert is_accepted(None, "")
    assert not is_accepted("At 17:42.\n", "")
    assert not is_accepted(None, "\n")
    assert fault_of(block(None), PRINTED, is_needed=False) is None


def test_further_lines_are_left_out_of_a_long_output_of_the_shell() -> None:
    lines = LONG.splitlines(keepends=True)
    for shown in (1, LONGEST - 1):
        output = "".join([*lines[:shown], "…\n"])
        assert is_accepted(output, LONG, "sh")
        assert not is_accepted(output, LONG, "python")
        assert not is_accepted(output, "".join(lines[:LONGEST]), "sh")
        assert not is_accepted(output.replace("line 0", "line 1"), LONG, "sh")
    assert not is_accepted("…\n", LONG, "sh")
    assert not is_accepted("".join(["…\n", *lines[-3:]]), LONG, "sh")
    assert not is_accepted("".join([*lines[:2], "…\n", *lines[-2:]]), LONG, "sh")
    assert not is_accepted("".join([*lines[:LONGEST], "…\n"]), LONG, "sh")
    assert not is_accepted(LONG, LONG, "sh")


def test_a_wide_line_is_a_fault() -> None:
    assert is_accepted(f"{'x' * WIDEST}\n", "x" * WIDEST)
    assert not is_accepted(f"{'x' * WIDEST}x\n", "x" * WIDEST + "x")


def test_an_output_is_written_anew_with_its_lines_that_fit() -> None:
    stale = block("High tide at 17:40.\n\nrun … took … s\n")
    written = output_of(stale, PRINTED)
    assert written == "High tide at 17:42.\n\nrun … took … s\n"
    assert output_of(block(written), PRINTED) == written
    assert output_of(block(None), PRINTED) == "High tide at 17:42.\n\nrun 4c1f took 0.25 s\n"
    assert output_of(stale, "") is None


@pytest.mark.parametrize("printed", [PRINTED, LONG, "word " * 40, "x" * 200])
def test_an_output_that_was_written_anew_has_no_fault(printed: str) -> None:
    written = output_of(block(None, "sh"), printed)
    assert is_accepted(written, printed, "sh")


def test_a_long_output_of_python_stays_a_fault() -> None:
    assert not is_accepted(output_of(block(None), LONG), LONG)


def test_outputs_are_written_where_they_are_read() -> None:
    for page in pages():
        stated = {one.line: one.output for one in blocks_of(page)}
        assert with_outputs(page, stated) == text_of(page)
    stated = {one.line: one.output for one in blocks_of("docs/choose.md")}
    assert sum(output is not None for output in stated.values()) > 5
    assert "```text" not in with_outputs("docs/choose.md", dict.fromkeys(stated))
