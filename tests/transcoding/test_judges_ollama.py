"""The official Ollama client reads every recording and fixture, written as Ollama's chat."""

from corpus import needs_corpus
from judge_ollama import read
from judging import shown, verdicts

pytestmark = needs_corpus


def test_the_ollama_client_reads_every_stream_as_its_message() -> None:
    count, found = verdicts("ollama", read)
    assert count > 1500
    assert not found, shown(found)
