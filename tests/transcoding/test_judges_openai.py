"""The official OpenAI client reads every recording and fixture, as Chat and as Responses."""

import pytest

from corpus import needs_corpus
from judge_openai import chat, responses
from judging import shown, verdicts
from samples import sampled

pytestmark = needs_corpus


@sampled(10)
def test_the_chat_client_reads_every_stream_as_its_message(every: int) -> None:
    count, found = verdicts("openai-chat", chat, every=every)
    assert count > 1500 // every
    assert not found, shown(found)


# The client serialises every item by its types, and warns of items that those lack.
@sampled(10)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_the_responses_client_reads_every_stream_as_its_message(every: int) -> None:
    count, found = verdicts("openai-responses", responses, every=every)
    assert count > 1500 // every
    assert not found, shown(found)
