"""Each delta of a part has its number, and a whole part is the part that the message has."""

from pathlib import Path
from typing import Any, cast

import pytest

from corpus import FIXTURES
from deltafold import Decoder, DeltaKind, MessageAssembler, ToolCallPart

BODIES = sorted(FIXTURES.glob("*/*/wire.*"))
OF_PARTS = set(DeltaKind) - {
    DeltaKind.START,
    DeltaKind.USAGE,
    DeltaKind.AUDIO,
    DeltaKind.DONE,
    DeltaKind.ERROR,
}


@pytest.mark.parametrize("path", BODIES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_each_delta_of_a_part_has_the_number_of_its_part(path: Path) -> None:
    decoder = Decoder(cast("Any", path.parts[-3]))
    assembler = MessageAssembler()
    deltas = [*decoder.feed(path.read_bytes()), *decoder.close()]
    for delta in deltas:
        assembler.consume(delta)
    parts = assembler.snapshot().parts
    for delta in deltas:
        assert (delta.part_index is not None) == (delta.kind in OF_PARTS)
        part = None if delta.part_index is None else parts[delta.part_index]
        if delta.tool_call_id is not None:
            assert isinstance(part, ToolCallPart)
            assert part.tool_call_id == delta.tool_call_id
        if delta.kind is DeltaKind.PART:
            assert delta.part == part
