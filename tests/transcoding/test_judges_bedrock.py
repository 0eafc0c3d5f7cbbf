"""The event stream parser of botocore reads every recording and fixture, as ConverseStream."""

from corpus import needs_corpus
from judge_bedrock import read
from judging import shown, verdicts
from samples import sampled

pytestmark = needs_corpus


@sampled(10)
def test_botocore_reads_every_stream_as_its_message(every: int) -> None:
    count, found = verdicts("bedrock-converse", read, every=every)
    assert count > 1500 // every
    assert not found, shown(found)
