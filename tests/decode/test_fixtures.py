"""Every fixture gives the deltas and the message in its folder, for every chunking.

So does, without files beside it, every recorded stream.

The recordings lie beside the project, at `../shared/corpus` or where `DELTAFOLD_CORPUS` says.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import reference
from corpus import CORPUS, needs_corpus
from deltafold import MessageAssembler, MessageDelta, dialect_names
from fixture_bodies import CASES, body_of
from samples import sampled
from splits import SIZES, awaited, decode, final, folded, random_pieces, sized
from wire_deltas import assert_same

DIALECTS = dialect_names()
SMALL = 20_000  # bytes up to which a recording is cut in pieces of every size


def name_of(case: Path) -> str:
    return f"{case.parent.name}/{case.name}"


@pytest.fixture(params=CASES, ids=name_of)
def case(request: pytest.FixtureRequest) -> Path:
    return request.param  # type: ignore[no-any-return]


def wanted_deltas(case: Path) -> list[dict[str, object]]:
    # The text of a delta may hold U+2028, which ends no line of a JSON lines file.
    lines = (case / "deltas.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def content(assembler: MessageAssembler | reference.MessageAssembler) -> dict[str, object]:
    wire = assembler.snapshot().to_dict()
    del wire["id"]
    return wire


@pytest.mark.parametrize("dialect", DIALECTS)
def test_there_are_fixtures_of_each_dialect(dialect: str) -> None:
    cases = [case for case in CASES if case.parent.name == dialect]
    # The fixtures of Chat cover the behaviour that Mistral shares with it.
    assert len(cases) >= (10 if dialect == "mistral" else 25)
    assert all("hecked against " in (case / "SOURCE.md").read_text() for case in cases)


def test_a_fixture_gives_its_deltas_and_its_message(case: Path) -> None:
    dialect, body = body_of(case)
    deltas, assembler = decode(dialect, [body])
    assert [delta.to_dict() for delta in deltas] == wanted_deltas(case)
    assert content(assembler) == json.loads((case / "message.json").read_text(encoding="utf-8"))


def test_the_deltas_of_the_file_fold_to_the_message_in_both_assemblers(case: Path) -> None:
    expected = json.loads((case / "message.json").read_text(encoding="utf-8"))
    extension, plain = MessageAssembler(), reference.MessageAssembler()
    for wire in wanted_deltas(case):
        extension.consume(wire)
        plain.consume(wire)
    assert content(extension) == expected
    assert_same(extension, plain)


def same_in_pieces(dialect: str, pieces: list[bytes], deltas: list[MessageDelta]) -> None:
    found, _ = decode(dialect, pieces)
    assert found == deltas, f"{len(pieces)} pieces of at most {max(map(len, pieces))} bytes"


def test_a_fixture_gives_the_same_in_pieces_of_any_size(case: Path) -> None:
    dialect, body = body_of(case)
    deltas, assembler = decode(dialect, [body])
    for size in SIZES:
        same_in_pieces(dialect, sized(body, size), deltas)
    for seed in range(20):
        same_in_pieces(dialect, random_pieces(body, seed, cuts=5), deltas)
    plain = reference.MessageAssembler()
    for delta in deltas:
        plain.consume(delta)
    assert_same(assembler, plain)


def test_a_fixture_folds_to_the_same_in_one_shot_in_chunks_and_awaited(case: Path) -> None:
    dialect, body = body_of(case)
    expected = final(decode(dialect, [body])[1])
    for pieces in ([body], sized(body, 11), random_pieces(body, 1, cuts=9)):
        assert folded(dialect, pieces) == expected
        assert awaited(dialect, pieces) == expected


def recorded(dialect: str) -> list[tuple[str, bytes]]:
    lines = (CORPUS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    files = [str(row["file"]) for row in rows if row["dialect"] == dialect]
    return [(file, (CORPUS / file).read_bytes()) for file in files]


@sampled(10)
@needs_corpus
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_recording_gives_the_same_in_any_pieces(dialect: str, every: int) -> None:
    bodies = recorded(dialect)[::every]
    assert bodies
    for seed, (name, body) in enumerate(bodies):
        deltas, assembler = decode(dialect, [body])
        cuts = [random_pieces(body, seed, cuts=count) for count in (1, 7, 50)]
        if len(body) <= SMALL:
            cuts += [sized(body, size) for size in SIZES]
        for pieces in cuts:
            found, _ = decode(dialect, pieces)
            assert found == deltas, f"{name} in {len(pieces)} pieces"
        assert folded(dialect, cuts[1]) == final(assembler), name
    name, body = bodies[0]
    assert awaited(dialect, sized(body, 100)) == folded(dialect, [body]), name
