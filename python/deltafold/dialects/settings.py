"""Settings that all dialects have in common, and the types of their fields.

Laws: the field names are the ones of the contract, whatever a provider calls them; a field that a
dialect does not have is an error that names the nearest one; every class is immutable.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import ConfigDict, Field, model_validator

from deltafold.contract.near_names import did_you_mean
from deltafold.contract.short_repr import ShortRepr
from deltafold.contract.wire_models import LateModel
from deltafold.specs.output_schema import OutputSchema
from deltafold.specs.tool_specs import ToolChoice

Whole = Annotated[int, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Temperature = Annotated[float, Field(strict=True, ge=0)]
Penalty = Annotated[float, Field(strict=True, ge=-2, le=2)]
Flag = Annotated[bool, Field(strict=True)]
Object: TypeAlias = dict[str, object]


class CacheConfig(ShortRepr, LateModel):
    """Settings of prompt caching: `auto` requests it from providers that need a request.

    >>> AnthropicModel(
    ...     {"model_id": "claude-opus-4-8"}, cache_config=CacheConfig(lifetime="1h")
    ... )

    Attributes:
        lifetime: time for which the provider keeps the prompt; None is the provider's default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Literal["auto", "none"] = "auto"
    lifetime: Literal["5m", "1h"] | None = None


_IN_A_CALL: Final = "pass {} to stream() or send_message() (docs/models.md)"
_OF_RETRIES: Final = (
    "a Model sends nothing twice: retry while error.retryable (docs/how-to/retries.md), or set "
    "loop.max_retries of an Agent"
)
_OF_TIMEOUTS: Final = "pass timeouts=deltafold.Timeouts(…), in seconds (docs/transports.md)"
_OF_CLIENTS: Final = "pass client=, a client of httpx, httpx2, aiohttp or the SDK"

_ELSEWHERE: Final[Mapping[object, str]] = {
    **dict.fromkeys(("tools", "functions"), _IN_A_CALL.format("tool_specs")),
    **dict.fromkeys(
        ("system", "system_instruction", "instructions"), _IN_A_CALL.format("system_prompt")
    ),
    **dict.fromkeys(("max_retries", "num_retries", "retries"), _OF_RETRIES),
    **dict.fromkeys(("request_timeout", "timeout"), _OF_TIMEOUTS),
    **dict.fromkeys(("http_client", "http_async_client", "proxies", "proxy"), _OF_CLIENTS),
    **dict.fromkeys(("api_base", "endpoint_url", "openai_api_base"), "pass base_url="),
    **dict.fromkeys(("key", "openai_api_key", "token"), "pass api_key="),
    **dict.fromkeys(("default_headers", "headers"), "pass extra_headers="),
    **dict.fromkeys(("default_query", "query"), "pass extra_query="),
    **dict.fromkeys(("callbacks", "event_hooks"), "pass hooks=deltafold.Hooks(…)"),
    "n": "several answers are those of stream_choices() and deltafold.rollouts (docs/scale.md)",
    "stream": "stream() streams, and send_message(…, stream=False) does not",
    "response_format": "pass output= to send_message(), or output_schema (docs/models.md)",
    "response_model": "pass output= to send_message() (docs/how-to/structured-output.md)",
}
"""What to write instead of names that SDKs and other libraries have for the same."""


class ModelConfig(ShortRepr, LateModel):
    """Settings that all adapters share; the class of a dialect adds the settings of its provider.

    This class accepts unknown fields. The adapter that receives the settings checks them.

    >>> ModelConfig(model_id="gpt-5.6-terra", temperature=0.2).temperature
    0.2

    Attributes:
        reasoning_effort: the amount of reasoning: none, minimal, low, medium, high, xhigh, max, or
            a word of the provider. Where an API has another member, the request has that member.
        output_schema: the form of the answer: an `OutputSchema`, or the JSON Schema. It is sent in
            the member of the API. A setting of the API's own for the same takes precedence.
        provider_tools: tools that the provider runs or defines, in the form of its API; they follow
            the caller's tools.
        provider_tool_positions: the position of each provider tool among all tools of the request.
        known_as: the name by which the table of models knows this model: an Azure deployment and a
            proxy's alias have names of their own. None is `model_id`.
        strict_settings: whether settings are sent as they were written, also those that the model
            is known to refuse.
        extra_body: members that are added to the request body unchanged; they replace other
            members.
        extra_headers: headers of the request.
        extra_query: query parameters of the request.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    model_id: str = Field(min_length=1)
    temperature: Temperature | None = None
    max_tokens: Count | None = None
    top_p: Share | None = None
    stop_sequences: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    reasoning_effort: str | None = None
    output_schema: OutputSchema | None = None
    cache_config: CacheConfig | None = None
    provider_tools: tuple[Object, ...] = ()
    provider_tool_positions: tuple[Count, ...] | None = None
    known_as: str | None = None
    strict_settings: Flag = False
    extra_body: Mapping[str, object] = Field(default_factory=dict[str, object], repr=False)
    extra_headers: Mapping[str, str] = Field(default_factory=dict[str, str], repr=False)
    extra_query: Mapping[str, object] = Field(default_factory=dict[str, object], repr=False)

    @model_validator(mode="before")
    @classmethod
    def _suggest_known_fields(cls, value: object) -> object:
        given: object = value
        if cls.model_config.get("extra") == "forbid" and isinstance(given, Mapping):
            for name in cast("Mapping[object, object]", given):
                if name not in cls.model_fields:
                    if name in _ELSEWHERE:
                        raise ValueError(
                            f"{cls.__name__} has no field {name!r}: {_ELSEWHERE[name]}"
                        )
                    raise ValueError(
                        f"{cls.__name__} has no field {name!r}{cls._advice(str(name))}"
                    )
        return value

    @classmethod
    def _advice(cls, name: str) -> str:
        """Return what to write instead of an unknown field, "" if nothing is near."""
        return did_you_mean(name, cls.model_fields, cutoff=0.5)

    def fields_set(self) -> dict[str, object]:
        """Return the fields that were given, extra ones too, by name."""
        given: dict[str, object] = {name: getattr(self, name) for name in self.model_fields_set}
        return given
