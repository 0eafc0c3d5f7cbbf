"""Of several answers in one response, the one that `choice` names is followed, and no other."""

from pathlib import Path

import pytest

import deltafold

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        ("bedrock-invoke/cohere-two-generations", ("ab", "xy")),
        ("bedrock-invoke/titan-two-answers", ("abc", "xy")),
        ("bedrock-invoke/whole-body-generations", ("one", "two")),
        ("bedrock-invoke/whole-body-results", ("one", "two")),
        ("gemini/candidates-sometimes-without-index", ("abcde", "xyyzz")),
        ("gemini/candidates-without-index", ("one", "two")),
        ("gemini/two-candidates", ("zero.", "one!")),
        ("openai-chat/choices-without-index", ("ab", "xy")),
        ("openai-chat/two-choices", ("AB", "x")),
        ("openai-chat/whole-body-two-choices", ("one", "two")),
    ],
)
def test_one_answer_is_followed(case: str, texts: tuple[str, str]) -> None:
    (wire,) = (FIXTURES / case).glob("wire.*")
    followed: list[str] = []
    for choice in (0, 1):
        batch = deltafold.decode_response(wire.read_bytes(), case.partition("/")[0], choice=choice)
        assembler = deltafold.MessageAssembler()
        assembler.consume(batch)
        message = assembler.snapshot()
        assert "other_choices" in {warning["code"] for warning in message.meta.warnings}
        followed.append(message.text)
    assert tuple(followed) == texts
