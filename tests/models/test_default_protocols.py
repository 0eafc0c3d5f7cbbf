"""Protocol and vendor of a model whose name says neither, and what a refusal says about them."""

from typing import Any, Final

import pytest

from deltafold import Message, MisuseError, ModelError, load_model
from deltafold.testing import Recording, ReplayTransport

CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("openai/gpt-5.6-terra", RESPONSES),
        ("openai/gpt-5-mini", RESPONSES),
        ("openai/o3", RESPONSES),
        ("openai/gpt-5.2-codex", RESPONSES),
        ("openai/gpt-5.4-pro", RESPONSES),
        ("openai/gpt-6.9-sol", RESPONSES),
        ("openai/ft:gpt-5-mini:acme::1", RESPONSES),
        ("openai/gpt-4.1", CHAT),
        ("openai/gpt-5-chat-latest", CHAT),
        ("openai/our-own-model", CHAT),
        ("openai/gpt-*", CHAT),
        ("azure/gpt-5.6-terra", CHAT),
        ("openrouter/openai/gpt-5.6-terra", CHAT),
        ("groq/openai/gpt-oss-120b", CHAT),
        ("openai-chat/gpt-5.6-terra", CHAT),
        ("openai-responses/gpt-4.1", RESPONSES),
        ("anthropic-messages/claude-opus-5-5", "anthropic-messages"),
    ],
)
def test_the_table_chooses_the_protocol(name: str, dialect: str) -> None:
    assert load_model(name, api_key="k").dialect == dialect


@pytest.mark.parametrize(
    ("settings", "dialect"),
    [
        ({"seed": 7}, CHAT),
        ({"candidate_count": 4}, CHAT),
        ({"response_format": {"type": "json_object"}}, CHAT),
        ({"reasoning": {"summary": "auto"}}, RESPONSES),
        ({"temperature": 1, "max_tokens": 9, "extra_headers": {"x": "y"}}, RESPONSES),
        ({"specification": "v1"}, CHAT),
        ({"specification": "openai-chat+qwen-xml"}, CHAT),
    ],
)
def test_a_setting_of_one_protocol_chooses_it(settings: dict[str, Any], dialect: str) -> None:
    assert load_model("openai/gpt-5.6-terra", api_key="k", **settings).dialect == dialect


def test_known_as_chooses_the_protocol_of_a_name_of_ones_own() -> None:
    model = load_model("openai/prod", known_as="gpt-5.6-terra", api_key="k")
    assert (model.dialect, model.model_id) == (RESPONSES, "prod")


def test_a_model_without_chat_takes_no_setting_of_chat() -> None:
    with pytest.raises(ValueError, match="no field 'seed': Responses has no such setting"):
        load_model("openai/gpt-5.4-pro", api_key="k", seed=7)
    model = load_model("openai/gpt-5.6-terra", api_key="k")
    with pytest.raises(ValueError, match="load 'openai-chat/…'"):
        model.stream("Hi", seed=7)
    with pytest.raises(ValueError, match="use text="):
        model.stream("Hi", verbosity="low")


def test_a_name_and_a_specification_that_differ_are_a_mistake() -> None:
    with pytest.raises(MisuseError, match="names openai-chat, and specification openai-responses"):
        load_model("openai-chat/gpt-5.6-terra", specification="responses")


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("gpt-5.6-terra", "openai"),
        ("o3", "openai"),
        ("claude-sonnet-5-5", "anthropic"),
        ("claude-opus-9", "anthropic"),
        ("gemini-3.8-flash", "google"),
        ("grok-4.3", "xai"),
        ("mistral-large-latest", "mistral"),
        ("kimi-k3", "moonshot"),
        ("deepseek-v4-pro", "deepseek"),
        ("glm-5.3", "zai"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-8",
            "bedrock",
        ),
    ],
)
def test_the_vendor_of_a_known_model_may_be_left_out(name: str, vendor: str) -> None:
    model = load_model(name, api_key="k", base_url="http://here.example")
    assert (model.provider_id, model.model_id) == (vendor, name)


@pytest.mark.parametrize(
    "name", ["llama-4-maverick", "qwen3-coder", "gpt-oss-120b", "mine", "x" * 999]
)
def test_a_model_of_many_hosts_needs_its_vendor(name: str) -> None:
    with pytest.raises(MisuseError, match=f"openrouter/{name}.*`deltafold models` lists all"):
        load_model(name)


def refused(name: str, status: int, error: dict[str, Any], **settings: Any) -> ModelError:  # noqa: ANN401 - settings
    transport = ReplayTransport(flat_out=True)
    transport.queue(Recording.error(status, {"error": error}))
    given: dict[str, Any] = {"base_url": "http://proxy.example/v1", **settings}
    with (
        load_model(name, api_key="k", client=transport, **given) as model,
        pytest.raises(ModelError) as caught,
    ):
        model.send_message_sync([Message.user("Hi")])
    return caught.value


def test_a_server_without_responses_is_named() -> None:
    error = refused("openai/gpt-5.6-terra", 404, {"message": "Not Found"})
    assert error.hint is not None
    assert "load 'openai-chat/…'" in error.hint
    assert "specification='openai-chat'" in str(error)
    chat = refused("openai-chat/gpt-5.6-terra", 404, {"message": "Not Found"})
    assert "specification" not in str(chat)
    own = "https://api.openai.com/v1"
    asked = refused("openai/gpt-5.6-terra", 404, {"message": "?"}, base_url=own)
    assert asked.hint == f"the request went to {own}/responses"


def test_a_model_that_is_shut_down_has_its_date_and_its_successor() -> None:
    absent = {"message": "The model does not exist", "code": "model_not_found"}
    own = {"base_url": "https://api.openai.com/v1"}
    error = refused("openai/gpt-5-mini", 404, absent, **own)
    assert error.hint is not None
    assert "gpt-5-mini" in error.hint
    assert "2026-12-11" in error.hint
    error = refused("anthropic/claude-sonnet-4-5", 404, {"type": "not_found_error", "message": "?"})
    assert error.hint is not None
    assert "claude-sonnet-5-5" in error.hint
    assert refused("openai/gpt-5.6-terra", 404, absent, **own).hint is None


def test_a_refused_setting_of_a_newer_model_names_the_row() -> None:
    message = {"message": "Unsupported value: 'reasoning.effort' does not support 'low'"}
    error = refused("openai/gpt-6.9-sol", 400, message, reasoning_effort="low")
    assert error.hint is not None
    for said in ("gpt-6.1-sol", "known_as=", "strict_settings=True"):
        assert said in error.hint
    other = {"message": "messages: too many images"}
    assert refused("openai/gpt-6.9-sol", 400, other).hint is None
    assert refused("openai/gpt-6.9-sol", 400, message, strict_settings=True).hint is None
    assert refused("openai/gpt-5.6-terra", 400, message).hint is None
