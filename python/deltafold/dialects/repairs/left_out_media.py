"""Files and images that a request cannot have: a text with their name stands for them.

In: an image or a file of a history, and who gets the request.  Out: the text, and why it is needed.
"""

from typing import NamedTuple

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.foreign_text import well_formed
from deltafold.dialects.acceptance import refused_medium
from deltafold.dialects.media import source_of
from deltafold.dialects.repairs.problems import ProblemCode
from deltafold.message.messages import FileRefPart, ImagePart, TextPart


class StandIn(NamedTuple):
    """Text that is sent in the place of a file.

    Attributes:
        code: the problem of the file.
        message: what is wrong with it.
        text: the text.
    """

    code: ProblemCode
    message: str
    text: TextPart


def stand_in(part: ImagePart | FileRefPart, dialect: str, model_id: str | None) -> StandIn | None:
    """Return what is sent in the place of a file, None if the file is."""
    try:
        source = source_of(part)
    except MisuseError as error:
        name = part.path if isinstance(part, FileRefPart) else part.url
        text = TextPart(text=well_formed(f"[{name} left out: it was not read]"))
        return StandIn(ProblemCode.LOCAL_FILE, str(error), text)
    kind = refused_medium(dialect, model_id, source)
    if kind is None:
        return None
    message = f"{model_id} does not read {kind}"
    return StandIn(ProblemCode.REFUSED_MEDIUM, message, TextPart(text=source.shown))
