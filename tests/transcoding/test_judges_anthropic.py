"""The official Anthropic client reads every recording and fixture, written as Messages."""

from corpus import needs_corpus
from judge_anthropic import read
from judging import shown, verdicts
from samples import sampled

pytestmark = needs_corpus

# The client parses arguments while they arrive and raises on invalid JSON.
LIMITS = frozenset({"anthropic-messages/call-not-json", "openai-responses/args-not-json"})


@sampled(10)
def test_the_messages_client_reads_every_stream_as_its_message(every: int) -> None:
    count, found = verdicts("anthropic-messages", read, LIMITS, every=every)
    assert count > 1500 // every
    assert not found, shown(found)
