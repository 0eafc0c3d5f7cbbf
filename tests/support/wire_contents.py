"""Every kind of content that the eight protocols have, each in the smallest body that holds it.

In: nothing.  Out: rows of a dialect, the place and the kind of a content, and a request body.

Source: the request types of the official clients, and the sections "Request" of docs/protocols/.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from any_name import AnyName
from wire_bodies import BODIES, Body

PNG: Final = "iVBORw0KGgo="
PDF: Final = "JVBERi0="
URL_SAFE: Final = "_9j_4AAQ"
PNG_URL: Final = f"data:image/png;base64,{PNG}"
PDF_URL: Final = f"data:application/pdf;base64,{PDF}"
HTTPS: Final = "https://example.com/cat.png"


ANTHROPIC_MEDIA: Final[Mapping[str, Body]] = {
    "image": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    },
    "image-url": {"type": "image", "source": {"type": "url", "url": HTTPS}},
    "image-file": {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    "document": {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
        "title": "Report",
        "context": "Of last year.",
        "citations": {"enabled": True},
    },
    "document-text": {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "The sky is grey."},
    },
    "document-content": {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": "The sky is grey."}]},
    },
    "document-content-text": {
        "type": "document",
        "source": {"type": "content", "content": "The sky is grey."},
    },
    "document-url": {
        "type": "document",
        "source": {"type": "url", "url": "https://example.com/report.pdf"},
        "title": "Report",
    },
    "document-file": {
        "type": "document",
        "source": {"type": "file", "file_id": "file_1"},
        "title": "Report",
    },
    "search-result": {
        "type": "search_result",
        "source": "https://example.com",
        "title": "Sky",
        "content": [{"type": "text", "text": "The sky is grey."}],
    },
}

ANTHROPIC_SERVER_BLOCKS: Final[Mapping[str, Body]] = {
    "server_tool_use": {"id": "s", "name": "web_search", "input": {"query": "sky"}},
    "web_search_tool_result": {
        "tool_use_id": "s",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://example.com",
                "title": "Sky",
                "encrypted_content": "c2ln",
            }
        ],
    },
    "web_fetch_tool_result": {
        "tool_use_id": "s",
        "content": {"type": "web_fetch_result", "url": "https://example.com", "content": {}},
    },
    "code_execution_tool_result": {
        "tool_use_id": "s",
        "content": {
            "type": "code_execution_result",
            "stdout": "42",
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
    },
    "tool_search_tool_result": {
        "tool_use_id": "s",
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "look"}],
        },
    },
    "mcp_tool_use": {"id": "s", "name": "ask", "server_name": "wiki", "input": {}},
    "mcp_tool_result": {
        "tool_use_id": "s",
        "is_error": False,
        "content": [{"type": "text", "text": "The sky is grey."}],
    },
    "compaction": {"content": "The user greeted."},
    "redacted_thinking": {"data": "c2ln"},
}

CHAT_MEDIA: Final[Mapping[str, Body]] = {
    "image": {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
    "image-url": {"type": "image_url", "image_url": {"url": HTTPS}},
    "image-text": {"type": "image_url", "image_url": HTTPS},
    "image-without-address": {"type": "image_url", "image_url": {"url": "/9j/4AAQ"}},
    "audio": {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    "audio-flac": {"type": "input_audio", "input_audio": {"data": "ZkxhQw==", "format": "flac"}},
    "file": {"type": "file", "file": {"file_data": PDF_URL, "filename": "report.pdf"}},
    "file-unnamed": {"type": "file", "file": {"file_data": PDF_URL}},
    "file-id": {"type": "file", "file": {"file_id": "file-1", "filename": "report.pdf"}},
    "file-id-encoded": {"type": "file", "file": {"file_id": "ZmlsZQ=="}},
    "file-url": {
        "type": "file",
        "file": {"file_data": "https://example.com/report.pdf", "filename": "report.pdf"},
    },
    "video": {"type": "video_url", "video_url": {"url": "https://example.com/cat.mp4"}},
    "other": {"type": "document", "document": {"text": "The sky is grey."}},
    "unknown": {"type": "hologram", "hologram": {"id": "1"}},
    "empty": {"type": "text", "text": ""},
}

CALL: Final = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at": "sky"}'},
}
RESULT: Final = {"role": "tool", "tool_call_id": "call00001", "content": "It is grey."}
SAID: Final = {"content": "So it is."}

RESPONSES_MEDIA: Final[Mapping[str, Body]] = {
    "image": {"type": "input_image", "image_url": PNG_URL, "detail": "low"},
    "image-url": {"type": "input_image", "image_url": HTTPS, "detail": "auto"},
    "image-without-address": {"type": "input_image", "image_url": "/9j/4AAQ", "detail": "auto"},
    "image-id": {"type": "input_image", "file_id": "file-1", "detail": "auto"},
    "file": {"type": "input_file", "filename": "report.pdf", "file_data": PDF_URL},
    "file-id": {"type": "input_file", "file_id": "file-1"},
    "file-id-named": {"type": "input_file", "file_id": "file-1", "filename": "report.pdf"},
    "file-url": {"type": "input_file", "file_url": "https://example.com/report.pdf"},
    "audio": {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    "unknown": {"type": "input_hologram", "id": "1"},
}

RESPONSES_ITEMS: Final[Mapping[str, Body]] = {
    "file_search_call": {"id": "i", "status": "completed", "queries": ["sky"], "results": []},
    "computer_call": {
        "id": "i",
        "call_id": "c",
        "status": "completed",
        "action": {"type": "screenshot"},
        "pending_safety_checks": [],
    },
    "web_search_call": {
        "id": "i",
        "status": "completed",
        "action": {"type": "search", "query": "sky"},
    },
    "image_generation_call": {"id": "i", "status": "completed", "result": PNG},
    "code_interpreter_call": {
        "id": "i",
        "status": "completed",
        "code": "6*7",
        "container_id": "k",
        "outputs": [{"type": "logs", "logs": "42"}],
    },
    "mcp_call": {"id": "i", "name": "ask", "server_label": "wiki", "arguments": "{}"},
    "mcp_list_tools": {"id": "i", "server_label": "wiki", "tools": []},
    "mcp_approval_request": {"id": "i", "name": "ask", "server_label": "wiki", "arguments": "{}"},
    "mcp_approval_response": {"approval_request_id": "i", "approve": True},
    "item_reference": {"id": "i"},
    "compaction": {"id": "i", "encrypted_content": "c2ln"},
    "local_shell_call_output": {"id": "i", "output": "The sky is grey."},
    "computer_call_output": {
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": PNG_URL},
    },
    "shell_call_output": {
        "call_id": "c",
        "output": [{"stdout": "42", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "apply_patch_call_output": {"call_id": "c", "status": "completed", "output": "Done."},
    "tool_search_output": {"call_id": "c", "execution": "client", "status": "x", "tools": []},
}

REASONING: Final = {"type": "reasoning", "id": "rs"}
MESSAGE: Final = {"type": "message", "role": "assistant", "id": "msg", "status": "completed"}
OUTPUT: Final[Body] = {"type": "output_text", "text": "So it is.", "annotations": []}

GEMINI_MEDIA: Final[Mapping[str, Body]] = {
    "image": {"inlineData": {"mimeType": "image/png", "data": PNG}},
    "image-url-safe": {"inline_data": {"mime_type": "image/jpeg", "data": URL_SAFE}},
    "image-named": {"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "Sky"}},
    "document": {"inlineData": {"mimeType": "application/pdf", "data": PDF}},
    "document-text": {"inlineData": {"mimeType": "text/plain", "data": "VGhlIHNreS4="}},
    "audio": {"inlineData": {"mimeType": "audio/mpeg", "data": "SUQz"}},
    "video": {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}},
    "file": {
        "fileData": {
            "mimeType": "application/pdf",
            "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/f1",
        }
    },
    "video-url": {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/1"}},
    "audio-url": {"fileData": {"mimeType": "audio/wav", "fileUri": "https://example.com/a.wav"}},
    "file-store": {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/cat.png"}},
    "file-untyped": {"fileData": {"fileUri": "https://youtu.be/1"}},
}

CONVERSE_MEDIA: Final[Mapping[str, Body]] = {
    "image": {"image": {"format": "png", "source": {"bytes": PNG}}},
    "image-s3": {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/cat.png"}}}},
    "document": {"document": {"format": "pdf", "name": "Report", "source": {"bytes": PDF}}},
    "document-text": {
        "document": {"format": "txt", "name": "Sky", "source": {"text": "The sky is grey."}}
    },
    "document-content": {
        "document": {
            "format": "txt",
            "name": "Sky",
            "source": {"content": [{"text": "The sky is grey."}]},
        }
    },
    "document-cited": {
        "document": {
            "format": "pdf",
            "name": "Report",
            "source": {"bytes": PDF},
            "context": "Of last year.",
            "citations": {"enabled": True},
        }
    },
    "video": {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}},
    "audio": {"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}},
    "search-result": {
        "searchResult": {
            "source": "https://example.com",
            "title": "Sky",
            "content": [{"text": "The sky is grey."}],
            "citations": {"enabled": True},
        }
    },
}

MISTRAL_MEDIA: Final[Mapping[str, Body]] = {
    "image": {"type": "image_url", "image_url": PNG_URL},
    "image-object": {"type": "image_url", "image_url": {"url": HTTPS, "detail": "low"}},
    "document": {"type": "document_url", "document_url": PDF_URL, "document_name": "report.pdf"},
    "document-url": {
        "type": "document_url",
        "document_url": "https://example.com/report.pdf",
        "document_name": "report.pdf",
    },
    "file": {"type": "file", "file_id": "11111111-1111-1111-1111-111111111111"},
    "audio": {"type": "input_audio", "input_audio": "UklGRg=="},
    "audio-url": {"type": "input_audio", "input_audio": "https://example.com/a.mp3"},
    "audio-object": {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
    "reference": {"type": "reference", "reference_ids": [1]},
}


def _tool_search(execution: str) -> list[Body]:
    search = {"call_id": "c", "execution": execution, "status": "completed"}
    dive: Body = {
        "type": "function",
        "name": "dive",
        "parameters": {"type": "object", "properties": {}},
    }
    sea: Body = {"type": "namespace", "name": "sea", "description": "", "tools": [dive]}
    return [
        {"type": "tool_search_call", "arguments": {"query": "sea"}, **search},
        {"type": "tool_search_output", "tools": [sea], **search},
    ]


CONTENTS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "anthropic-messages": {
        "system": {"text": {"type": "text", "text": "Be brief."}},
        "between": {
            "text": "Be brief.",
            "blocks": [{"type": "text", "text": "Be brief."}],
            "tool-addition": [
                {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}}
            ],
            "tool-removal": [
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}
            ],
            "tool-definition": [
                {
                    "type": "tool_addition",
                    "tool": {
                        "type": "tool_definition",
                        "definition": {"name": "dive", "input_schema": {"type": "object"}},
                    },
                }
            ],
        },
        "user": {
            **ANTHROPIC_MEDIA,
            "container-upload": {"type": "container_upload", "file_id": "file_1"},
        },
        "assistant": {
            kind: {"type": kind, **members} for kind, members in ANTHROPIC_SERVER_BLOCKS.items()
        }
        | {"thinking": {"type": "thinking", "thinking": "I see.", "signature": "c2ln"}},
        "result": {
            "text": {"content": "It is grey."},
            "none": {},
            "error": {"content": "No sky.", "is_error": True},
            "texts": {"content": [{"type": "text", "text": "Grey"}, {"type": "text", "text": "."}]},
            "tool-reference": {"content": [{"type": "tool_reference", "tool_name": "look"}]},
            **{kind: {"content": [block]} for kind, block in ANTHROPIC_MEDIA.items()},
        },
    },
    "bedrock-converse": {
        "system": {
            "text": {"text": "Be brief."},
            "guard": {"guardContent": {"text": {"text": "Be brief."}}},
        },
        "user": {
            **CONVERSE_MEDIA,
            "guard": {"guardContent": {"text": {"text": "The sky.", "qualifiers": ["query"]}}},
            "guard-image": {"guardContent": {"image": {"format": "png", "source": {"bytes": PNG}}}},
        },
        "assistant": {
            "image": CONVERSE_MEDIA["image"],
            "reasoning": {"reasoningContent": {"reasoningText": {"text": "I see."}}},
            "redacted": {"reasoningContent": {"redactedContent": "c2ln"}},
            "citations": {
                "citationsContent": {"content": [{"text": "It is grey."}], "citations": []}
            },
        },
        "result": {
            "none": [],
            "json": [{"json": {"sky": "grey"}}],
            "json-list": [{"json": [1, 2]}],
            "json-and-text": [{"json": {"sky": "grey"}}, {"text": "That is all."}],
            **{kind: [block] for kind, block in CONVERSE_MEDIA.items()},
        },
    },
    "cohere-chat": {
        "system": {"text": "Be brief.", "texts": [{"type": "text", "text": "Be brief."}]},
        "user": {kind: CHAT_MEDIA[kind] for kind in ("image", "image-url")},
        "assistant": {
            "thinking": {"content": [{"type": "thinking", "thinking": "I see."}, OUTPUT]},
            "citations": {**SAID, "citations": [{"start": 0, "end": 2, "text": "So"}]},
        },
        "call": {"plan": [{"tool_plan": "I look.", "tool_calls": [CALL]}, RESULT]},
        "result": {
            "text": "It is grey.",
            "document": [{"type": "document", "document": {"data": {"sky": "grey"}, "id": "1"}}],
            "document-text": [{"type": "document", "document": {"data": "It is grey."}}],
            "texts": [{"type": "text", "text": "Grey"}, {"type": "text", "text": "."}],
        },
    },
    "gemini": {
        "system": {"text": {"text": "Be brief."}},
        "user": {
            **GEMINI_MEDIA,
            "video-metadata": {**GEMINI_MEDIA["video-url"], "videoMetadata": {"fps": 1}},
        },
        "assistant": {
            "thought": {"text": "I see.", "thought": True, "thoughtSignature": "c2ln"},
            "image": GEMINI_MEDIA["image"],
            "code": {"executableCode": {"language": "PYTHON", "code": "6*7"}},
            "code-result": {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42"}},
            "tool-call": {"toolCall": {"id": "t", "toolType": "FILE_SEARCH", "args": {}}},
            "tool-response": {"toolResponse": {"id": "t", "toolType": "FILE_SEARCH"}},
        },
        "result": {
            "output": {"response": {"output": "It is grey."}},
            "error": {"response": {"error": "No sky."}},
            "error-object": {"response": {"error": {"code": 1}}},
            "object": {"response": {"sky": "grey", "error": None}},
            "output-object": {"response": {"output": {"sky": "grey"}}},
            "output-number": {"response": {"output": 7}},
            "none": {"response": {}},
            **{
                kind: {"response": {"sky": "grey"}, "parts": [part]}
                for kind, part in GEMINI_MEDIA.items()
            },
        },
    },
    "mistral": {
        "system": {"text": "Be brief.", "texts": [{"type": "text", "text": "Be brief."}]},
        "user": MISTRAL_MEDIA,
        "assistant": {
            "thinking": {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "I see."}]},
                    {"type": "text", "text": "So it is."},
                ]
            },
            "reference": {
                "content": [
                    {"type": "text", "text": "So it is."},
                    {"type": "reference", "reference_ids": [1]},
                ]
            },
        },
        "result": {
            "text": "It is grey.",
            "texts": [{"type": "text", "text": "Grey"}, {"type": "text", "text": "."}],
            **{kind: [content] for kind, content in MISTRAL_MEDIA.items()},
        },
    },
    "ollama": {
        "system": {"text": {"content": "Be brief."}},
        "user": {
            "image": {"content": "See.", "images": [PNG]},
            "image-of-no-type": {"content": "", "images": ["AAAA"]},
        },
        "assistant": {"thinking": {"content": "So it is.", "thinking": "I see."}},
        "result": {
            "text": {"content": "It is grey."},
            "image": {"content": "See.", "images": [PNG]},
        },
    },
    "openai-chat": {
        "system": {"text": "Be brief.", "texts": [{"type": "text", "text": "Be brief."}]},
        "developer": {"text": "Be brief."},
        "user": CHAT_MEDIA,
        "assistant": {
            "refusal": {"refusal": "I cannot."},
            "refusal-content": {"content": [{"type": "refusal", "refusal": "I cannot."}]},
            "audio": {"audio": {"id": "audio_1"}},
            "reasoning_content": {**SAID, "reasoning_content": "I see."},
            "reasoning": {**SAID, "reasoning": "I see."},
            "reasoning_details": {
                **SAID,
                "reasoning_details": [{"type": "reasoning.text", "text": "I see."}],
            },
            "encrypted": {
                **SAID,
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln"}],
            },
            "thinking_blocks": {
                **SAID,
                "thinking_blocks": [
                    {"type": "thinking", "thinking": "I see.", "signature": "c2ln"}
                ],
            },
            "reasoning-and-nothing": {"content": "", "reasoning_content": "I see."},
            "texts": {"content": [{"type": "text", "text": "So"}, {"type": "text", "text": "!"}]},
            "cached": {
                "content": [{"type": "text", "text": "So.", "cache_control": {"type": "ephemeral"}}]
            },
            "image": {"content": [CHAT_MEDIA["image"]]},
            "images": {**SAID, "images": [CHAT_MEDIA["image"]]},
        },
        "call": {
            "legacy": [
                {"function_call": CALL["function"]},
                {"role": "function", "name": "look", "content": "It is grey."},
            ],
            "custom": [
                {
                    "tool_calls": [
                        {
                            "id": "call00001",
                            "type": "custom",
                            "custom": {"name": "look", "input": "sky"},
                        }
                    ]
                },
                RESULT,
            ],
            "damaged": [
                {"tool_calls": [{**CALL, "function": {"name": "look", "arguments": '{"at'}}]},
                RESULT,
            ],
            "list": [
                {"tool_calls": [{**CALL, "function": {"name": "look", "arguments": "[1]"}}]},
                RESULT,
            ],
            "text-after": [{"tool_calls": [CALL], "content": "I look."}, RESULT],
        },
        "result": {
            "text": "It is grey.",
            "none": None,
            "texts": [{"type": "text", "text": "Grey"}, {"type": "text", "text": "."}],
            **{kind: [content] for kind, content in CHAT_MEDIA.items()},
        },
    },
    "openai-responses": {
        "system": {"text": "Be brief.", "texts": [{"type": "input_text", "text": "Be brief."}]},
        "developer": {"text": "Be brief."},
        "user": {
            kind: [{"type": "input_text", "text": "See:"}, content]
            for kind, content in RESPONSES_MEDIA.items()
        },
        "assistant": {
            "text": "So it is.",
            "refusal": [{"type": "refusal", "refusal": "I cannot."}],
            "unknown": [{"type": "output_hologram", "id": "1"}],
        },
        "item": {
            **{kind: [{"type": kind, **item}] for kind, item in RESPONSES_ITEMS.items()},
            "reasoning": [
                {**REASONING, "summary": [{"type": "summary_text", "text": "I see."}]},
                {**MESSAGE, "content": [OUTPUT]},
            ],
            "reasoning-raw": [
                {
                    **REASONING,
                    "summary": [],
                    "content": [{"type": "reasoning_text", "text": "I see."}],
                },
                {**MESSAGE, "content": [OUTPUT]},
            ],
            "reasoning-encrypted": [
                {**REASONING, "summary": [], "encrypted_content": "c2ln"},
                {**MESSAGE, "content": [OUTPUT]},
            ],
            "custom": [
                {"type": "custom_tool_call", "call_id": "c", "name": "look", "input": "sky"},
                {"type": "custom_tool_call_output", "call_id": "c", "output": "It is grey."},
            ],
            "tool-search": _tool_search("client"),
            "tool-search-of-the-provider": _tool_search("server"),
        },
        "result": {
            "text": "It is grey.",
            "texts": [{"type": "input_text", "text": "Grey"}, {"type": "input_text", "text": "."}],
            **{kind: [content] for kind, content in RESPONSES_MEDIA.items()},
        },
    },
}
"""The contents of each dialect, by their place in a request."""


class Row(NamedTuple):
    """One content in a body; a test is named after its place and kind."""

    dialect: AnyName
    place: str
    kind: str
    body: Body


def rows() -> Iterator[Row]:
    """Yield the rows of all dialects."""
    for dialect, places in CONTENTS.items():
        for place, contents in places.items():
            for kind, content in contents.items():
                yield Row(dialect, place, kind, BODIES[dialect](place, content))
