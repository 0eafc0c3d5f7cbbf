"""Captures: recorded responses in the forms in which other programs keep them.

In: a file or its bytes: a body, a HAR, output of curl, a cassette, lines of a log, a column of
bodies, each also compressed.  Out: the bodies, each with its protocol, address, status and headers.

Laws: the bytes tell the form, never the name, except for YAML and brotli. A body whose first event
tells its protocol is never taken for a capture. A capture is hostile input: its unpacked size is
bounded, and the cost is linear. No credential of a request is kept.
"""

from deltafold.testing.captures.captured import Captured
from deltafold.testing.captures.reading import read_capture

__all__ = ["Captured", "read_capture"]
