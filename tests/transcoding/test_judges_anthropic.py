"""The official Anthropic client reads every recording and fixture, written as Messages."""

from corpus import needs_corpus
from judge_anthropic import read
from judging import shown, verdicts

pytestmark = needs_corpus

# The client parses arguments while they arrive and raises on invalid JSON.
LIMITS = frozenset({"anthropic-messages/call-not-json", "openai-responses/args-not-json"})


def test_the_messages_client_reads_every_stream_as_its_message() -> None:
    count, found = verdicts("anthropic-messages", read, LIMITS)
    assert count > 1500
    assert not found, shown(found)
