"""docs/stream.svg is what tools/stream_picture.py draws from the recording of the demo."""

from xml.etree import ElementTree as ET

import deltafold
from stream_picture import PICTURE, RECORDING, ROOT, picture

BODY = (ROOT / RECORDING).read_bytes()


def test_the_picture_is_what_the_script_draws() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(BODY)


def test_the_picture_shows_every_word_of_the_message_and_loads_nothing() -> None:
    svg = ET.fromstring(picture(BODY))  # noqa: S314 - our own drawing
    shown = "".join(
        "".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")
    )
    message = deltafold.fold(BODY, "anthropic-messages")
    for part in message.parts:
        for word in (getattr(part, "text", None) or part.kind).split():
            assert word in shown
    assert not any("href" in name or name == "src" for node in svg.iter() for name in node.attrib)
