"""The event stream parser of botocore reads every recording and fixture, as ConverseStream."""

from corpus import needs_corpus
from judge_bedrock import read
from judging import shown, verdicts

pytestmark = needs_corpus


def test_botocore_reads_every_stream_as_its_message() -> None:
    count, found = verdicts("bedrock-converse", read)
    assert count > 1500
    assert not found, shown(found)
