"""Native tools of pydantic-ai: requests for them, and the blocks of their calls and results.

In: the framework's native tools; blocks of a provider.  Out: tools in the form of the provider's
API; parts of the framework.

Laws: a block goes back to its provider unchanged: the part of its call or its result carries it. A
block of an unknown kind becomes a native call named after its type. A tool that a dialect does not
have is refused by the framework before the request.
Source: the tools that the framework's own models send (pydantic-ai 2.68).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    FilePart,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
)
from pydantic_ai.native_tools import (
    AbstractNativeTool,
    CodeExecutionTool,
    FileSearchTool,
    MCPServerTool,
    WebFetchTool,
    WebSearchTool,
)

from deltafold.integrations.carried import MEMBER

Members: TypeAlias = dict[str, object]


def _given(**members: object) -> Members:
    return {name: value for name, value in members.items() if value not in (None, [])}


def _claude_search(tool: WebSearchTool) -> Members:
    location = tool.user_location
    return _given(
        type="web_search_20250305",
        name="web_search",
        max_uses=tool.max_uses,
        allowed_domains=tool.allowed_domains,
        blocked_domains=tool.blocked_domains,
        user_location=None if location is None else {"type": "approximate", **location},
    )


def _claude_fetch(tool: WebFetchTool) -> Members:
    return _given(
        type="web_fetch_20250910",
        name="web_fetch",
        max_uses=tool.max_uses,
        allowed_domains=tool.allowed_domains,
        blocked_domains=tool.blocked_domains,
        citations={"enabled": True} if tool.enable_citations else None,
        max_content_tokens=tool.max_content_tokens,
    )


def _claude_code(_: CodeExecutionTool) -> Members:
    return {"type": "code_execution_20250825", "name": "code_execution"}


def _openai_search(tool: WebSearchTool) -> Members:
    location = tool.user_location
    domains = _given(allowed_domains=tool.allowed_domains, blocked_domains=tool.blocked_domains)
    return _given(
        type="web_search",
        search_context_size=tool.search_context_size,
        user_location=None if location is None else {"type": "approximate", **location},
        filters=domains or None,
        external_web_access=tool.external_web_access,
    )


def _openai_code(tool: CodeExecutionTool) -> Members:
    files = [file.file_id for file in tool.files or () if file.provider_name == "openai"]
    return {"type": "code_interpreter", "container": {"type": "auto", **_given(file_ids=files)}}


def _openai_files(tool: FileSearchTool) -> Members:
    return _given(
        type="file_search",
        vector_store_ids=list(tool.file_store_ids),
        max_num_results=tool.max_num_results,
    )


def _openai_mcp(tool: MCPServerTool) -> Members:
    return _given(
        type="mcp",
        server_label=tool.id,
        require_approval="never",
        server_url=tool.url,
        authorization=tool.authorization_token,
        allowed_tools=tool.allowed_tools,
        server_description=tool.description,
        headers=tool.headers,
    )


_ToolForm: TypeAlias = tuple[type[AbstractNativeTool], Callable[[Any], Members]]

_FORMS: Final[Mapping[str, tuple[_ToolForm, ...]]] = {
    "anthropic-messages": (
        (WebSearchTool, _claude_search),
        (WebFetchTool, _claude_fetch),
        (CodeExecutionTool, _claude_code),
    ),
    "openai-responses": (
        (WebSearchTool, _openai_search),
        (CodeExecutionTool, _openai_code),
        (FileSearchTool, _openai_files),
        (MCPServerTool, _openai_mcp),
    ),
    "gemini": (
        (WebSearchTool, lambda _: {"google_search": {}}),
        (WebFetchTool, lambda _: {"url_context": {}}),
        (CodeExecutionTool, lambda _: {"code_execution": {}}),
    ),
}
"""Native tools of each dialect, and their form in its API."""

ALL: Final = frozenset(tool for forms in _FORMS.values() for tool, _ in forms)
"""Native tools that some dialect has."""


def native_tools_of(dialect: str) -> frozenset[type[AbstractNativeTool]]:
    """Return the native tools that a dialect has."""
    return frozenset(tool for tool, _ in _FORMS.get(dialect, ()))


def provider_tool(tool: AbstractNativeTool, dialect: str) -> Members:
    """Return a native tool in the form of the API; the dialect has the tool."""
    forms: dict[type[AbstractNativeTool], Callable[[Any], Members]] = dict(_FORMS[dialect])
    return forms[type(tool)](tool)


_NAMES: Final[Mapping[str, str]] = {
    "web_search_call": "web_search",
    "code_interpreter_call": "code_execution",
    "file_search_call": "file_search",
    "image_generation_call": "image_generation",
    "executableCode": "code_execution",
    "codeExecutionResult": "code_execution",
    "bash_code_execution_tool_result": "code_execution",
    "text_editor_code_execution_tool_result": "code_execution",
}
"""Names of native tools of the framework, by the type of a block."""

_ARGUMENTS: Final = ("input", "action", "arguments", "queries", "code", "executableCode")
_RESULTS: Final = ("content", "output", "outputs", "results", "status", "codeExecutionResult")


def parts_of_whole(
    part: Mapping[str, object], provider_name: str, names: dict[str, str]
) -> list[ModelResponsePart]:
    """Return a part that came whole as parts of the framework.

    Args:
        part: an image, a file or a provider's block, in its wire form.
        provider_name: the name of the vendor.
        names: the names of the native calls so far, by id; a call is added.
    """
    payload = cast("Mapping[str, Any]", part.get("payload") or {})
    details: dict[str, Any] = {MEMBER: {"part": dict(part)}}
    facts: Any = {"provider_name": provider_name, "provider_details": details}
    if part.get("kind") == "provider":
        return _parts_of_block(cast("Mapping[str, Any]", payload["block"]), facts, names)
    if isinstance(data := payload.get("data"), str):
        return [_file(f"data:{payload.get('mimeType')};base64,{data}", facts)]
    # The framework has no part for a file that the answer only names.
    return [NativeToolCallPart(str(part.get("kind")), dict(payload), **facts)]


def _file(url: str, facts: Mapping[str, Any]) -> FilePart:
    return FilePart(BinaryContent.narrow_type(BinaryContent.from_data_uri(url)), **facts)


def _parts_of_block(
    block: Mapping[str, Any], facts: Mapping[str, Any], names: dict[str, str]
) -> list[ModelResponsePart]:
    kind = str(block.get("type") or next(iter(block), "block"))
    if kind == "compaction":
        content = block.get("content")
        return [CompactionPart(content if isinstance(content, str) else None, **facts)]
    call_id = str(block.get("tool_use_id") or block.get("id") or block.get("call_id") or kind)
    if "tool_use_id" in block or kind.endswith("_output") or kind == "codeExecutionResult":
        name = names.get(call_id) or _name_of(block, kind)
        content = _only(_members(block, _RESULTS))
        return [NativeToolReturnPart(name, content, tool_call_id=call_id, **facts)]
    name = _name_of(block, kind)
    arguments: Any = _only(_members(block, _ARGUMENTS))
    if kind == "mcp_tool_use":
        name = f"mcp_server:{block.get('server_name')}"
        arguments = {"action": "call_tool", "tool_name": block.get("name"), "tool_args": arguments}
    names[call_id] = name
    if isinstance(arguments, list):
        arguments = {"input": cast("object", arguments)}
    call = NativeToolCallPart(name, arguments, tool_call_id=call_id, **facts)
    if "status" not in block:
        return [call]
    # One block is both the call and its result, and the call carries it.
    of_result: Any = {"provider_name": facts["provider_name"]}
    result = NativeToolReturnPart(
        name, _members(block, _RESULTS), tool_call_id=call_id, **of_result
    )
    image = block.get("result")
    if kind != "image_generation_call" or not isinstance(image, str) or not image:
        return [call, result]
    form = block.get("output_format") or "png"
    return [call, _file(f"data:image/{form};base64,{image}", {"id": call_id, **of_result}), result]


def _name_of(block: Mapping[str, Any], kind: str) -> str:
    name = _NAMES.get(kind) or block.get("name")
    return name if isinstance(name, str) and name else kind.removesuffix("_tool_result")


def _members(block: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: block[name] for name in names if block.get(name) is not None}


def _only(members: dict[str, Any]) -> Any:
    """Return the value of a single member, None without any, else the members."""
    values = list(members.values())
    if len(values) == 1 and not isinstance(values[0], str):
        return values[0]
    return members or None
