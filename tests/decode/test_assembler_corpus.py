"""On every recorded stream both assemblers give the same message, and it is right by construction.

The recordings lie beside the project, at `../shared/corpus` or where `DELTAFOLD_CORPUS` says;
without them there is nothing to test.
"""

import json
import pickle
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import reference
from any_name import AnyName
from corpus import ROOT, needs_corpus, recorded
from deltafold import _core
from deltafold._core import Decoder, MessageDelta
from deltafold.message.messages import Message
from samples import sampled
from wire_deltas import assert_same, content

SCHEMA: dict[str, Any] = json.loads((ROOT / "contract.schema.json").read_text(encoding="utf-8"))

pytestmark = needs_corpus


@sampled(10)
@pytest.mark.parametrize("dialect", _core.dialect_names())
def test_both_assemblers_agree_on_every_recording(dialect: AnyName, every: int) -> None:
    schema: Any = Draft202012Validator(SCHEMA)
    bodies = recorded(dialect)[::every]
    assert bodies
    for name, body in bodies:
        extension, by_delta = _core.MessageAssembler(), _core.MessageAssembler()
        plain = reference.MessageAssembler()
        decoder = Decoder(dialect, run_id="run")
        for batch in (decoder.feed(body), decoder.close()):
            extension.consume(batch)
            for delta in batch:
                plain.consume(delta)
                by_delta.consume(delta)
        assert_same(extension, plain)
        assert_same(by_delta, plain)
        message = extension.snapshot()
        assert content(Message.from_json(message.to_json())) == content(message), name
        assert not list(schema.iter_errors(message.to_dict())), name


@sampled(10)
@pytest.mark.parametrize("dialect", _core.dialect_names())
def test_every_delta_of_a_recording_survives_its_json_and_pickling(
    dialect: AnyName, every: int
) -> None:
    for name, body in recorded(dialect)[::every]:
        for delta in Decoder(dialect, run_id="run").feed(body):
            for twin in (
                MessageDelta.from_json(delta.to_json()),
                MessageDelta.from_dict(delta.to_dict()),
                pickle.loads(pickle.dumps(delta)),  # noqa: S301
            ):
                assert twin.to_dict() == delta.to_dict(), name
                assert twin.same_content(delta), name
                assert twin == delta, name
                assert hash(twin) == hash(delta), name
