"""Ctrl-C while much is read in one call: it ends the call, and the objects stay usable.

Each case runs in a process of its own, to which a child of it sends the signal.  The case reads
once without a signal.  Then it reads again, and the signal comes after a fifth of that time: a call
that does not look at signals goes on for the other four fifths.
"""

import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = '''
import os, signal, sys, time
import deltafold
from deltafold import Decoder, Fold, MessageAssembler, PartialJson

# A shell starts background processes with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

EVENT = b'data: {"choices":[{"delta":{"content":"%s"}}]}\\n\\n' % (b"x" * 30)
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n'
HUGE = EVENT * ((128 << 20) // len(EVENT))
# Work for the decoder alone: nothing is made of it afterwards.
EMPTY = EVENT.replace(b"x" * 30, b"")
BULK = EVENT + EMPTY * ((256 << 20) // len(EMPTY))
MANY = [EMPTY * 200] * (len(BULK) // (len(EMPTY) * 200))
LIMITS = deltafold.Limits(message_bytes=1 << 40)
def send_after(seconds):
    """Let another process send the signal: a thread would wait for the GIL."""
    if os.fork() == 0:
        time.sleep(seconds)
        os.kill(os.getppid(), signal.SIGINT)
        os._exit(0)
    return time.monotonic() + seconds

def interrupted(begin, work, expected=KeyboardInterrupt):
    """Return the object that was interrupted, and the share of the time that the signal took."""
    spent = begin()
    start = time.monotonic()
    work(spent)
    whole = time.monotonic() - start
    del spent
    for _ in range(4):  # on a machine with much to do, the child may come late
        begun = begin()
        sent = send_after(whole / 5)
        try:
            work(begun)
        except expected:
            return begun, (time.monotonic() - sent) / whole
        try:
            os.wait()
        except expected:
            pass
    raise SystemExit("the work was over before the signal came")

def nothing():
    return None

def folded_whole(_):
    try:
        deltafold.fold(BULK, "openai-chat", limits=LIMITS)
    except deltafold.ModelError:
        pass  # the body has no end

def fold():
    return interrupted(nothing, folded_whole)[1]

def fold_many_small():
    work = lambda _: deltafold.fold_many(MANY, "openai-chat", threads=1)
    return interrupted(nothing, work)[1]

def fold_many_on_threads():
    work = lambda _: deltafold.fold_many([BULK] * 4, "openai-chat", 2, limits=LIMITS)
    return interrupted(nothing, work)[1]

def decode_response():
    work = lambda _: deltafold.decode_response(BULK, "openai-chat", limits=LIMITS)
    return interrupted(nothing, work)[1]

def decoder_feed():
    body = EVENT[20:] + HUGE
    def begin():
        decoder, message = Decoder("openai-chat", run_id="r", limits=LIMITS), MessageAssembler()
        message.consume(decoder.feed(EVENT[:20]))
        return decoder, message
    (decoder, message), share = interrupted(begin, lambda pair: pair[0].feed(body))
    # Nothing of it was read.
    message.consume(decoder.feed(EVENT[20:] + STOP))
    assert message.build_final_message().text == "x" * 30
    return share

def fold_feed():
    begin = lambda: Fold("openai-chat", limits=LIMITS)
    folding, share = interrupted(begin, lambda one: one.feed(HUGE))
    assert set(folding.text) == {"x"}
    try:
        folding.feed(EVENT)
    except deltafold.MisuseError as error:
        assert "interrupted" in str(error)
    else:
        raise SystemExit("it goes on with a hole in it")
    folding.close()
    assert folding.status == "error"
    return share

def streamed(read, chunks=(EVENT, HUGE)):
    begin = lambda: deltafold.stream(chunks, "openai-chat", limits=LIMITS)
    def work(stream):
        try:
            read(stream)
        except deltafold.ModelError:
            pass  # the body has no end
    stream, share = interrupted(begin, work)
    assert stream.error.code == "cancelled", stream.error
    assert stream.snapshot().text.startswith("x" * 30)
    assert list(stream) == []
    return share

def stream_deltas():
    def read(stream):
        for batch in stream.batches():
            pass
    return streamed(read)

def stream_message():
    return streamed(lambda stream: stream.final_message())

def stream_small_chunks():
    return streamed(lambda stream: stream.final_message(), [EVENT] + [EMPTY] * 3_000_000)

def partial_json():
    text = b"[1,2,3]," * (len(HUGE) // 8)
    def begin():
        reader = PartialJson()
        reader.feed('{"a": [')
        return reader
    reader, share = interrupted(begin, lambda reader: reader.feed(text))
    assert reader.error is not None and not reader.complete
    return share

def a_handler_of_the_callers_own():
    def handle(number, frame):
        raise TimeoutError("enough")
    signal.signal(signal.SIGINT, handle)
    return interrupted(nothing, folded_whole, TimeoutError)[1]

def a_handler_that_goes_on():
    decoder, seen = Decoder("openai-chat", limits=LIMITS), []
    def handle(number, frame):
        try:
            decoder.feed(EVENT)
        except deltafold.MisuseError as error:
            seen.append(str(error))
    signal.signal(signal.SIGINT, handle)
    send_after(0.02)
    count = len(decoder.feed(HUGE))
    assert count == len(HUGE) // len(EVENT) + 1, count
    assert seen and "busy" in seen[0]
    return 0.0

print(globals()[sys.argv[1]]())
'''

CASES: Final = [
    "fold",
    "fold_many_small",
    "fold_many_on_threads",
    "decode_response",
    "decoder_feed",
    "fold_feed",
    "stream_deltas",
    "stream_message",
    "stream_small_chunks",
    "partial_json",
    "a_handler_of_the_callers_own",
    "a_handler_that_goes_on",
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_signal_ends_what_is_being_read(case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, case],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.5
