"""The demonstration's clients of three protocols get the same answer."""

import deltafold.cli.demo.__main__ as demo
from deltafold.cli.demo.protocols import show


def test_three_clients_read_the_same_answer_in_their_own_events() -> None:
    chat, responses, messages = show(demo.SCENES[0].body, 0.0)
    assert chat.text == responses.text == messages.text != ""
    assert chat.arguments == responses.arguments == messages.arguments != ""
    assert chat.tokens == responses.tokens == messages.tokens == (1948, 187)
    assert chat.events[-1] == ("usage", 1)
    assert responses.events[-1] == ("completed", 1)
    assert messages.events[-1] == ("message_stop", 1)
