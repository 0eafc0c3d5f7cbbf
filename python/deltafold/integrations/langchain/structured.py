"""Structured output: runnables of langchain-core whose result is an object.

In: a schema, a chat model and its deltafold model.  Out: the runnable.

Laws: the form of the schema that the API accepts is the one of `Model.stream(output=...)`. A model
whose API follows no schema gets a tool. Partial objects stream as they do from the framework's own
models.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import (
    JsonOutputKeyToolsParser,
    PydanticToolsParser,
)
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.utils.pydantic import is_basemodel_subclass

from deltafold.models.base import Model
from deltafold.models.output_request import mechanism_of, output_request
from deltafold.specs.output_schema import OutputSchema
from deltafold.streams.outputs import Output

Method: TypeAlias = Literal["json_schema", "function_calling", "json_mode"]


def structured(
    chat: BaseChatModel,
    model: Model[Any],
    schema: dict[str, Any] | type,
    *,
    can_force: bool,
    include_raw: bool,
    method: Method | None,
    strict: bool | None,
    **settings: Any,
) -> Runnable[LanguageModelInput, Any]:
    """Return the runnable.

    Args:
        chat: the chat model, which is asked.
        model: its deltafold model.
        schema: the schema of the result, as `with_structured_output` takes it.
        can_force: whether the model can be made to call a tool.
        include_raw: whether the result is `{raw, parsed, parsing_error}`.
        method: the mechanism; None is the one of the API.
        strict: whether the provider must hold the answer to the schema.
        settings: settings of the calls.

    Raises:
        ValueError: `strict` is set for "json_mode", which has no schema.
    """
    if method == "json_mode" and strict is not None:
        raise ValueError("strict: json_mode has no schema to be strict about")
    function: dict[str, Any] = convert_to_openai_tool(schema)["function"]
    shown = {"kwargs": {"method": method, "strict": strict}, "schema": schema}
    settings |= {"ls_structured_output_format": shown}
    if method == "json_mode":
        asking: Runnable[LanguageModelInput, Any] = chat.bind(
            output_schema=OutputSchema(), **settings
        )
        return _with_raw(asking, asking | _text_parser(schema), _text_parser(schema), include_raw)
    sent = None if method == "function_calling" else _schema_sent(model, function, strict)
    if sent is not None:
        asking = chat.bind(output_schema=sent, **settings)
        return _with_raw(asking, asking | _text_parser(schema), _text_parser(schema), include_raw)
    forced = function["name"] if can_force else None
    asking = chat.bind_tools([schema], tool_choice=forced, strict=strict, **settings)
    parser: Runnable[Any, Any]
    if isinstance(schema, type) and is_basemodel_subclass(schema):
        parser = PydanticToolsParser(tools=[schema], first_tool_only=True)
    else:
        parser = JsonOutputKeyToolsParser(key_name=function["name"], first_tool_only=True)
    return _with_raw(asking, asking | parser, parser, include_raw)


def _schema_sent(
    model: Model[Any], function: Mapping[str, Any], strict: bool | None
) -> OutputSchema | None:
    """Return the schema that the API accepts; None if the model follows none."""
    config = model.get_config()
    if mechanism_of(model.dialect, model.provider_id, config.known_as or config.model_id) is None:
        return None
    output = Output(
        dict(function["parameters"]),
        name=function["name"],
        description=function.get("description") or None,
        strict=strict,
    )
    request = output_request(output, model.dialect, model.provider_id, config, has_tools=False)
    sent = request.settings.get("output_schema")
    return sent if isinstance(sent, OutputSchema) else None


def _text_parser(schema: dict[str, Any] | type) -> Runnable[Any, Any]:
    if isinstance(schema, type) and is_basemodel_subclass(schema):
        parser: PydanticOutputParser[Any] = PydanticOutputParser(pydantic_object=schema)
        return parser
    return JsonOutputParser()


def _with_raw(
    asking: Runnable[LanguageModelInput, Any],
    parsed: Runnable[LanguageModelInput, Any],
    parser: Runnable[Any, Any],
    include_raw: bool,
) -> Runnable[LanguageModelInput, Any]:
    if not include_raw:
        return parsed
    assigned = RunnablePassthrough.assign(
        parsed=itemgetter("raw") | parser, parsing_error=lambda _: None
    )
    failed = RunnablePassthrough.assign(parsed=lambda _: None)
    return RunnableMap(raw=asking) | assigned.with_fallbacks(
        [failed], exception_key="parsing_error"
    )
