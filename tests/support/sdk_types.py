"""The official clients' own request types, as judges of a body.

In: a dialect and a body.  Out: nothing, or an AssertionError that says where the body is wrong.

Law: every member is known to the client, and every list is walked to its end.
"""

import json
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

import mistralai.client.models
from anthropic.types import message_create_params
from google.genai import types as gemini
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from typing_extensions import get_type_hints, is_typeddict

# Modules without types, and modules that their client does not document as public.
LOADERS: Any = import_module("botocore.loaders")
MODEL: Any = import_module("botocore.model")
VALIDATE: Any = import_module("botocore.validate")
COHERE: Any = import_module("cohere.v2.client")
OLLAMA: Any = import_module("ollama._types")

# Members of the API that this client types no more, because its newest models refuse them
# (docs/protocols/anthropic-messages.md#sampling).
ANTHROPIC_UNTYPED = {"temperature", "top_p", "top_k"}
# Members of the API that this client does not type yet (docs/protocols/ollama.md#request).
OLLAMA_UNTYPED = {"id", "tool_call_id", "truncate", "shift"}


def check(dialect: str, body: Mapping[str, Any]) -> None:
    """Judge a body."""
    JUDGES[dialect](body)


def judge_typed_dict(
    hint: object, untyped: Collection[str] = ()
) -> Callable[[Mapping[str, Any]], None]:
    def judge(body: Mapping[str, Any]) -> None:
        typed = {name: value for name, value in body.items() if name not in untyped}
        problems = mismatches(hint, typed, "body")
        assert not problems, "\n".join(problems)

    return judge


def mismatches(hint: Any, value: Any, place: str) -> list[str]:  # noqa: ANN401, C901, PLR0911 - one case a form
    """Return how a value differs from a type, nothing where it does not."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Annotated, Required, NotRequired}:
        return mismatches(arguments[0], value, place)
    if is_typeddict(hint):
        return typed_dict_mismatches(hint, value, place)
    if origin in {Union, types.UnionType}:
        tries = [mismatches(argument, value, place) for argument in arguments]
        # The innermost error belongs to the intended alternative.
        return [] if [] in tries else max(tries, key=lambda found: max(map(depth_of, found)))
    if origin is Literal:
        return [] if value in arguments else [f"{place}: {value!r} is none of {arguments}"]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return [f"{place}: no object"]
        members = cast("Mapping[str, Any]", value)
        return [p for k, v in members.items() for p in mismatches(arguments[1], v, f"{place}.{k}")]
    if isinstance(origin, type) and issubclass(origin, Iterable):
        if not isinstance(value, Sequence) or isinstance(value, str):
            return [f"{place}: no list"]
        items = enumerate(listed(value))
        return [p for i, item in items for p in mismatches(arguments[0], item, f"{place}[{i}]")]
    if hint in {object, Any}:
        return []
    try:
        adapter_of(hint).validate_python(value, strict=hint in {str, bool, int})
    except ValidationError as error:
        return [f"{place}: {error.errors()[0]['msg']}"]
    except PydanticSchemaGenerationError:  # an open file, which no JSON holds
        return [f"{place}: {hint}"]
    return []


@cache
def adapter_of(hint: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    return TypeAdapter(hint)


@cache
def hints_of(hint: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any TypedDict
    return get_type_hints(hint, include_extras=True)


def listed(value: Any) -> list[Any]:  # noqa: ANN401 - a list of anything
    return list(value)


def depth_of(problem: str) -> int:
    return problem.partition(":")[0].count(".") + problem.partition(":")[0].count("[")


def typed_dict_mismatches(hint: Any, value: Any, place: str) -> list[str]:  # noqa: ANN401 - any TypedDict
    if not isinstance(value, Mapping):
        return [f"{place}: no object"]
    given = cast("Mapping[str, Any]", value)
    members = hints_of(hint)
    problems = [f"{place}.{name}: unknown" for name in given if name not in members]
    problems += [f"{place}.{name}: missing" for name in hint.__required_keys__ if name not in given]
    for name, member in members.items():
        if name in given:
            problems += mismatches(member, given[name], f"{place}.{name}")
    return problems


def judge_gemini(body: Mapping[str, Any]) -> None:
    judges: dict[str, Any] = {
        "contents": list[gemini.Content],
        "systemInstruction": gemini.Content,
        "tools": list[gemini.Tool],
        "toolConfig": gemini.ToolConfig,
        "generationConfig": gemini.GenerationConfig,
        "safetySettings": list[gemini.SafetySetting],
        "cachedContent": str,
        "serviceTier": gemini.ServiceTier,
    }
    for name, value in body.items():
        # Only JSON is read as base64.
        adapter_of(judges[name]).validate_json(json.dumps(value))


@cache
def converse_shape() -> Any:  # noqa: ANN401 - botocore is untyped
    loader = LOADERS.Loader()
    service = MODEL.ServiceModel(loader.load_service_model("bedrock-runtime", "service-2"))
    return service.operation_model("ConverseStream").input_shape


def judge_bedrock(body: Mapping[str, Any]) -> None:
    shape = converse_shape()
    unknown: list[str] = []
    walk_shape(shape, body, "body", unknown)
    assert not unknown, unknown
    report = VALIDATE.ParamValidator().validate({"modelId": "m", **body}, shape)
    assert not report.has_errors(), report.generate_report()


def walk_shape(shape: Any, value: Any, place: str, unknown: list[str]) -> None:  # noqa: ANN401 - botocore is untyped
    """Collect what the service model does not know, and words outside of its lists."""
    if getattr(shape, "is_document_type", False):
        return
    if shape.type_name == "structure":
        for name, member in value.items():
            if name not in shape.members:
                unknown.append(f"{place}.{name}")
            else:
                walk_shape(shape.members[name], member, f"{place}.{name}", unknown)
    elif shape.type_name == "list":
        for index, item in enumerate(value):
            walk_shape(shape.member, item, f"{place}[{index}]", unknown)
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        unknown.append(f"{place}: {value}")


def judge_ollama(body: Mapping[str, Any]) -> None:
    def typed(value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {k: typed(v) for k, v in members.items() if k not in OLLAMA_UNTYPED}
        return [typed(item) for item in listed(value)] if isinstance(value, list) else value

    known = {name: value for name, value in body.items() if name not in {"tools", "format"}}
    OLLAMA.ChatRequest.model_validate(typed(known), extra="forbid")
    OLLAMA.ChatRequest.model_validate(body)


def judge_cohere(body: Mapping[str, Any]) -> None:
    members = hints_of(COHERE.V2Client.chat_stream)
    for name, value in body.items():
        if name != "stream":  # which of the client's functions is called
            adapter_of(members[name]).validate_python(value, extra="forbid")


def judge_mistral(body: Mapping[str, Any]) -> None:
    request = mistralai.client.models.ChatCompletionStreamRequest
    request.model_validate(body, extra="forbid")


JUDGES: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "anthropic-messages": judge_typed_dict(
        message_create_params.MessageCreateParamsStreaming, ANTHROPIC_UNTYPED
    ),
    "openai-chat": judge_typed_dict(completion_create_params.CompletionCreateParamsStreaming),
    "openai-responses": judge_typed_dict(response_create_params.ResponseCreateParamsStreaming),
    "gemini": judge_gemini,
    "bedrock-converse": judge_bedrock,
    "ollama": judge_ollama,
    "cohere-chat": judge_cohere,
    "mistral": judge_mistral,
}
