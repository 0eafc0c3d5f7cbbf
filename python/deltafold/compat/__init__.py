"""Objects of other packages, from the bytes of their own responses.

`compat.openai` and `compat.anthropic` yield the objects that the SDK's own stream yields, in a
fraction of its time; `message_of` returns the message beside them. `frames` and `aframes` yield the
JSON of each event.

Laws: this package imports no SDK; `compat.openai` and `compat.anthropic` import theirs.
"""

from deltafold.compat.event_frames import aframes, frames
from deltafold.compat.sdk_streams import message_of

__all__ = ["aframes", "frames", "message_of"]
