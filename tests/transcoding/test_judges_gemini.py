"""The official Gemini client reads every recording and fixture, written as Gemini."""

from corpus import needs_corpus
from judge_gemini import read
from judging import shown, verdicts

pytestmark = needs_corpus


def test_the_gemini_client_reads_every_stream_as_its_message() -> None:
    count, found = verdicts("gemini", read)
    assert count > 1500
    assert not found, shown(found)
