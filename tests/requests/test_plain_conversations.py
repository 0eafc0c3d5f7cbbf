"""Texts of system and user: their short way to a body of Chat is that of every conversation."""

from typing import cast
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltafold import Message, OpenAIChatConfig, TextPart
from deltafold.dialects import dialect_of
from deltafold.dialects.openai_chat import render
from deltafold.dialects.openai_chat.render import plain_messages
from deltafold.message.messages import MessagePart, Role

CHAT = dialect_of("openai-chat")
CONFIG = OpenAIChatConfig(model_id="m", temperature=0.5)
TEXTS = st.sampled_from(["", " ", "?", "Name a tide.", "ä\n\x00"])
PARTS = st.one_of(
    TEXTS.map(lambda text: TextPart(text=text)),
    TEXTS.map(
        lambda text: TextPart(
            text=text,
            provider_state={"dialect": "openai-chat", "data": {"members": {"cache": 1}}},
        )
    ),
)


def message_of(role: Role, parts: list[TextPart]) -> Message:
    return Message(role=role, parts=cast("list[MessagePart]", parts))


MESSAGES = st.lists(
    st.builds(
        message_of,
        st.sampled_from([Role.SYSTEM, Role.USER, Role.ASSISTANT]),
        st.lists(PARTS, min_size=1, max_size=2),
    ),
    max_size=3,
)


@given(messages=MESSAGES)
def test_the_short_way_gives_the_body_of_the_long_one(messages: list[Message]) -> None:
    short = CHAT.render(messages, [], CONFIG)
    with patch.object(render, "plain_messages", return_value=None):
        assert CHAT.render(messages, [], CONFIG) == short


@pytest.mark.parametrize(
    ("messages", "is_plain"),
    [
        ([Message.system("Be brief."), Message.user("?")], True),
        ([Message.user("a", "b")], False),
        ([Message.user("")], False),
        ([Message.user("?"), Message.assistant("!")], False),
    ],
)
def test_only_single_texts_of_system_and_user_are_plain(
    messages: list[Message], *, is_plain: bool
) -> None:
    assert (plain_messages(messages) is not None) is is_plain
