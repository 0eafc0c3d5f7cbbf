"""The official Ollama client reads every recording and fixture, written as Ollama's chat."""

from corpus import needs_corpus
from judge_ollama import read
from judging import shown, verdicts
from samples import sampled

pytestmark = needs_corpus


@sampled(10)
def test_the_ollama_client_reads_every_stream_as_its_message(every: int) -> None:
    count, found = verdicts("ollama", read, every=every)
    assert count > 1500 // every
    assert not found, shown(found)
