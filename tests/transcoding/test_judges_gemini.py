"""The official Gemini client reads every recording and fixture, written as Gemini."""

from corpus import needs_corpus
from judge_gemini import read
from judging import shown, verdicts
from samples import sampled

pytestmark = needs_corpus


@sampled(10)
def test_the_gemini_client_reads_every_stream_as_its_message(every: int) -> None:
    count, found = verdicts("gemini", read, every=every)
    assert count > 1500 // every
    assert not found, shown(found)
