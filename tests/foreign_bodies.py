"""Requests that somebody else wrote, as the protocol documents describe them.

In: a dialect.  Out: bodies by name; `tests/requests/<dialect>/foreign/<name>.json` holds what is
read of each, and what it becomes when that is rendered again, where that is not the same.

Source: the protocol notes on each dialect, the part on requests.
"""

from typing import Any

HELLO = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}

ANTHROPIC: dict[str, Any] = {
    "minimal": {"model": "m", "max_tokens": 16, "messages": HELLO},
    "system-text": {"model": "m", "max_tokens": 16, "system": "Be brief.", "messages": HELLO},
    "cache-marks": {
        "model": "m",
        "max_tokens": 16,
        "system": [
            {"type": "text", "text": "Be brief."},
            {
                "type": "text",
                "text": "The book.",
                "cache_control": {"type": "ephemeral", "ttl": "1h"},
            },
        ],
        "tools": [{"name": "f", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}],
        "messages": HELLO,
    },
    "tool-turn": {
        "model": "m",
        "max_tokens": 16,
        "tools": [{"name": "weather", "description": "d", "input_schema": SCHEMA}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "c2Vj"},
                    {"type": "text", "text": "Both."},
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "weather",
                        "input": {"city": "A"},
                    },
                    {
                        "type": "tool_use",
                        "id": "toolu_2",
                        "name": "weather",
                        "input": {"city": "B"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no such city"}],
                    },
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
    },
    "result-without-content": {
        "model": "m",
        "max_tokens": 16,
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
        ],
    },
    "media": {
        "model": "m",
        "max_tokens": 16,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/a"}},
                    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                    {
                        "type": "document",
                        "title": "notes",
                        "context": "from 1999",
                        "citations": {"enabled": True},
                        "source": {"type": "text", "media_type": "text/plain", "data": "Hi"},
                    },
                    {"type": "document", "source": {"type": "content", "content": "Hi"}},
                ],
            }
        ],
    },
    "server-tools": {
        "model": "m",
        "max_tokens": 16,
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                    {
                        "type": "text",
                        "text": "Tides.",
                        "citations": [
                            {
                                "type": "web_search_result_location",
                                "url": "https://example.com",
                                "encrypted_index": "ZQ==",
                            }
                        ],
                    },
                ],
            },
            {"role": "user", "content": "More"},
        ],
    },
    "programmatic-call": {
        "model": "m",
        "max_tokens": 16,
        "tools": [
            {"name": "f", "input_schema": SCHEMA, "allowed_callers": ["code_execution_20260120"]}
        ],
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "t",
                        "name": "f",
                        "input": {},
                        "caller": {"type": "code_execution_20260120", "tool_id": "s"},
                    }
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "1"}],
            },
        ],
    },
    "settings": {
        "model": "m",
        "max_tokens": 16,
        "messages": HELLO,
        "temperature": 1,
        "top_k": 5,
        "top_p": 0.5,
        "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "low"},
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "cache_control": {"type": "ephemeral"},
        "stream": False,
    },
    "unknown-members": {
        "model": "m",
        "max_tokens": 16,
        "container": "c",
        "speed": "fast",
        "messages": [{"role": "user", "content": "Hello", "weight": 2}],
    },
    "split-results": {
        "model": "m",
        "max_tokens": 16,
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
        ],
    },
}

CHAT: dict[str, Any] = {
    "minimal": {"model": "m", "messages": HELLO},
    "old-limit": {"model": "m", "messages": HELLO, "max_tokens": 9, "stop": "END", "stream": True},
    "developer": {
        "model": "m",
        "messages": [{"role": "developer", "content": "Be brief."}, *HELLO],
    },
    "named-user": {
        "model": "m",
        "messages": [{"role": "user", "name": "ada", "content": "Hello"}],
    },
    "contents": {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "See."},
                    {
                        "type": "image_url",
                        "image_url": {"url": "https://example.com/a.jpg", "detail": "low"},
                    },
                    {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGOA=="}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
                    {"type": "file", "file": {"file_id": "file-1"}},
                    {"type": "file", "file": {"file_id": "file-1", "format": "pdf"}},
                    {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
                ],
            }
        ],
    },
    "tool-turn": {
        "model": "m",
        "tools": [FUNCTION, {"type": "custom", "custom": {"name": "patch"}}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_a",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{ "city": "A" }'},
                    },
                    {"id": "call_b", "type": "custom", "custom": {"name": "patch", "input": "x"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_a", "content": "rain"},
            {"role": "tool", "tool_call_id": "call_b", "content": [{"type": "text", "text": "ok"}]},
        ],
    },
    "reasoning-content": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": ""},
        ],
    },
    "reasoning-details": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "Yes",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln"},
                    {"type": "reasoning.encrypted", "data": "c2Vj"},
                ],
            },
        ],
    },
    "thinking-blocks": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "Yes",
                "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}],
            },
        ],
    },
    "signed-call": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                        "extra_content": {"google": {"thought_signature": "c2ln"}},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "name": "f", "content": "1"},
        ],
    },
    "refusal": {
        "model": "m",
        "messages": [*HELLO, {"role": "assistant", "content": None, "refusal": "No."}],
    },
    "audio": {
        "model": "m",
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "wav"},
        "messages": [*HELLO, {"role": "assistant", "audio": {"id": "audio_1"}}, *HELLO],
    },
    "settings": {
        "model": "m",
        "messages": HELLO,
        "max_completion_tokens": 9,
        "n": 2,
        "logit_bias": {"50256": -100},
        "stop": ["A", "B"],
        "seed": 1,
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        "store": True,
        "functions": [{"name": "old"}],
    },
    "legacy-call": {
        "model": "m",
        "messages": [
            *HELLO,
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
        ],
    },
}

RESPONSES: dict[str, Any] = {
    "string": {"model": "m", "input": "Hello"},
    "instructions": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": "Hello"}],
        "store": False,
    },
    "developer": {
        "model": "m",
        "instructions": "A.",
        "input": [{"role": "developer", "content": "B."}, {"role": "user", "content": "Hello"}],
    },
    "contents": {
        "model": "m",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "See."},
                    {"type": "input_image", "image_url": "https://example.com/a.png"},
                    {"type": "input_image", "file_id": "file-1", "detail": "high"},
                    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                    {"type": "input_file", "file_id": "file-2", "filename": "a.pdf"},
                    {
                        "type": "input_file",
                        "filename": "a.pdf",
                        "file_data": "data:application/pdf;base64,JVBERi0=",
                    },
                    {"type": "input_video", "file_id": "file-3"},
                ],
            }
        ],
    },
    "reasoning-turn": {
        "model": "gpt-5.2",
        "store": False,
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "reasoning": {"effort": "low"},
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
        "input": [
            {"role": "user", "content": "Hello"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "f",
                "arguments": "{}",
                "status": "completed",
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "1"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "phase": "final_answer",
                "content": [
                    {"type": "output_text", "text": "One", "annotations": []},
                    {"type": "output_text", "text": "Two", "annotations": []},
                ],
            },
            {"role": "user", "content": "More"},
        ],
    },
    "unencrypted-reasoning": {
        "model": "m",
        "store": False,
        "input": [
            {"role": "user", "content": "Hello"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm"}],
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "f",
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "1"},
        ],
    },
    "custom-call": {
        "model": "m",
        "tools": [{"type": "custom", "name": "patch"}],
        "tool_choice": {"type": "custom", "name": "patch"},
        "input": [
            {"role": "user", "content": "Hello"},
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
        ],
    },
    "output-contents": {
        "model": "m",
        "input": [
            {"role": "user", "content": "Hello"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {
                "type": "function_call_output",
                "id": "fco_1",
                "call_id": "c",
                "output": [
                    {"type": "input_text", "text": "See"},
                    {
                        "type": "input_image",
                        "detail": "auto",
                        "image_url": "data:image/png;base64,iVBORw0=",
                    },
                ],
            },
        ],
    },
    "shell": {
        "model": "m",
        "tools": [{"type": "local_shell"}],
        "input": [
            {"role": "user", "content": "ls"},
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "c",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
            },
            {"type": "local_shell_call_output", "id": "lsh_1", "output": "a.txt"},
        ],
    },
    "item-reference": {
        "model": "m",
        "previous_response_id": "resp_1",
        "input": [
            {"type": "item_reference", "id": "msg_1"},
            {"role": "user", "content": "Go on"},
        ],
    },
    "assistant-texts": {
        "model": "m",
        "input": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "One"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Two"}]},
            {"role": "user", "content": "More"},
        ],
    },
    "settings": {
        "model": "m",
        "input": "Hello",
        "max_output_tokens": 9,
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "truncation": "auto",
        "metadata": {"a": "b"},
        "prompt": {"id": "pmpt_1"},
        "moderation": {"type": "auto"},
        "stream": True,
        "stream_options": {"include_obfuscation": False},
    },
}

GEMINI: dict[str, Any] = {
    "minimal": {"contents": [{"parts": [{"text": "Hello"}]}]},
    "snake-case": {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inline_data": {"mime_type": "image/png", "data": "iVBORw0="}},
                    {"file_data": {"mime_type": "video/mp4", "file_uri": "gs://b/v.mp4"}},
                ],
            }
        ],
        "generation_config": {"max_output_tokens": 9, "top_k": 4.0, "stop_sequences": ["END"]},
    },
    "calls-without-ids": {
        "contents": [
            {"role": "user", "parts": [{"text": "Both"}]},
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"name": "f", "args": {"a": 1}},
                        "thoughtSignature": "c2ln",
                    },
                    {"functionCall": {"name": "f"}},
                ],
            },
            {
                "role": "function",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"output": "1"}}},
                    {"functionResponse": {"name": "f", "response": {"error": "no"}}},
                ],
            },
        ]
    },
    "old-schema": {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "f",
                        "description": "d",
                        "behavior": "BLOCKING",
                        "parameters": {
                            "type": "OBJECT",
                            "properties": {"a": {"type": "STRING", "nullable": True}},
                        },
                    }
                ]
            },
            {"googleSearch": {}},
        ],
    },
    "tool-modes": {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "toolConfig": {
            "functionCallingConfig": {"mode": "VALIDATED", "streamFunctionCallArguments": True},
            "retrievalConfig": {"languageCode": "fr"},
        },
    },
    "one-tool": {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    },
    "several-tools": {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}
        },
    },
    "thoughts": {
        "contents": [
            {"role": "user", "parts": [{"text": "Hello"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {"text": "Yes", "thoughtSignature": "c2ln"},
                    {"text": "", "thoughtSignature": "c2ln"},
                ],
            },
            {"role": "user", "parts": [{"text": "More"}]},
        ]
    },
    "code-execution": {
        "contents": [
            {"role": "user", "parts": [{"text": "2+2"}]},
            {
                "role": "model",
                "parts": [
                    {"executableCode": {"language": "PYTHON", "code": "print(2+2)"}},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
                ],
            },
            {"role": "user", "parts": [{"text": "And?"}]},
        ],
        "tools": [{"codeExecution": {}}],
    },
    "results": {
        "contents": [
            {"role": "user", "parts": [{"text": "Hello"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": {}}}]},
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "a",
                            "name": "f",
                            "response": {"sky": "grey"},
                            "scheduling": "SILENT",
                            "parts": [
                                {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}}
                            ],
                        }
                    },
                    {"text": "And now?"},
                ],
            },
        ]
    },
    "settings": {
        "contents": [
            {"role": "user", "parts": [{"text": "Hello", "videoMetadata": {"fps": 1}}]},
        ],
        "generationConfig": {
            "temperature": 0,
            "candidateCount": 2,
            "responseSchema": {"type": "STRING"},
            "responseMimeType": "application/json",
            "thinkingConfig": {"thinkingBudget": -1},
            "speechConfig": {},
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
        "cachedContent": "cachedContents/1",
        "labels": {"team": "a"},
    },
}

SPEC = {"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}}
BEDROCK: dict[str, Any] = {
    "minimal": {"messages": [{"role": "user", "content": [{"text": "Hello"}]}]},
    "system": {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}, {"text": "Or not."}],
        "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
    },
    "guard": {
        "system": [{"guardContent": {"text": {"text": "No."}}}],
        "messages": [
            {"role": "user", "content": [{"guardContent": {"text": {"text": "Hello"}}}]},
        ],
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
    },
    "media": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "See."},
                    {"image": {"format": "png", "source": {"bytes": "iVBORw0="}}},
                    {"image": {"format": "gif", "source": {"s3Location": {"uri": "s3://b/a.gif"}}}},
                    {
                        "document": {
                            "format": "pdf",
                            "name": "a report",
                            "source": {"bytes": "JVBERi0="},
                        }
                    },
                    {
                        "document": {
                            "format": "pdf",
                            "name": "other",
                            "source": {"s3Location": {"uri": "s3://b/a.pdf", "bucketOwner": "1"}},
                        }
                    },
                    {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}},
                ],
            }
        ]
    },
    "tool-turn": {
        "messages": [
            {"role": "user", "content": [{"text": "Hello"}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
                    {"reasoningContent": {"redactedContent": "c2Vj"}},
                    {"text": "Both."},
                    {"toolUse": {"toolUseId": "a", "name": "f", "input": {"city": "A"}}},
                    {"toolUse": {"toolUseId": "b", "name": "f", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "a",
                            "content": [{"json": {"sky": "grey"}}],
                            "status": "success",
                        }
                    },
                    {
                        "toolResult": {
                            "toolUseId": "b",
                            "content": [{"text": "no"}],
                            "status": "error",
                        }
                    },
                    {"cachePoint": {"type": "default", "ttl": "5m"}},
                ],
            },
        ],
        "toolConfig": {"tools": [SPEC], "toolChoice": {"any": {}}},
    },
    "result-contents": {
        "messages": [
            {"role": "user", "content": [{"text": "Hello"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "a",
                            "content": [
                                {"text": "See"},
                                {"json": {"a": 1}},
                                {"image": {"format": "png", "source": {"bytes": "iVBORw0="}}},
                                {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}},
                            ],
                        }
                    },
                    {"text": "Go on."},
                ],
            },
        ],
        "toolConfig": {"tools": [SPEC, {"cachePoint": {"type": "default"}}]},
    },
    "choices": {
        "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
        "toolConfig": {"tools": [SPEC], "toolChoice": {"tool": {"name": "f"}}},
    },
    "system-tool": {
        "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
        "toolConfig": {
            "tools": [{"systemTool": {"name": "nova_grounding"}}],
            "toolChoice": {"auto": {}},
        },
    },
    "citations": {
        "messages": [
            {"role": "user", "content": [{"text": "Hello"}]},
            {
                "role": "assistant",
                "content": [
                    {"citationsContent": {"content": [{"text": "Tides"}], "citations": []}}
                ],
            },
            {"role": "user", "content": [{"text": "More"}]},
        ]
    },
    "settings": {
        "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
        "inferenceConfig": {
            "maxTokens": 9,
            "temperature": 0.5,
            "topP": 0.5,
            "stopSequences": ["E"],
        },
        "additionalModelRequestFields": {"top_k": 4},
        "additionalModelResponseFieldPaths": ["/stop_sequence"],
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "flex"},
        "outputConfig": {"effort": "low"},
        "promptVariables": {"a": {"text": "b"}},
        "requestMetadata": {"a": "b"},
    },
    "unknown-members": {
        "messages": [{"role": "user", "content": [{"hologram": {"frames": 4}}]}],
        "inferenceConfig": {"maxTokens": 9, "mood": "calm"},
        "colour": "blue",
    },
}

OLLAMA: dict[str, Any] = {
    "minimal": {"model": "m", "messages": HELLO},
    "no-stream": {"model": "m", "messages": HELLO, "stream": False},
    "system": {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, *HELLO]},
    "images": {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": "See",
                "images": ["iVBORw0KGgo=", "/9j/4AAQ", "R0lGODlh", "UklGRgAA", "AAAA"],
            }
        ],
    },
    "calls-without-ids": {
        "model": "m",
        "tools": [FUNCTION],
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"function": {"index": 0, "name": "weather", "arguments": {"city": "A"}}},
                    {"function": {"index": 1, "name": "weather", "arguments": {"city": "B"}}},
                ],
            },
            {"role": "tool", "tool_name": "weather", "content": "rain"},
            {"role": "tool", "tool_name": "weather", "content": "sun"},
        ],
    },
    "calls-with-ids": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm.",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}],
            },
            {"role": "tool", "tool_name": "f", "tool_call_id": "c", "content": "1"},
        ],
    },
    "result-image": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}],
            },
            {
                "role": "tool",
                "tool_name": "f",
                "tool_call_id": "c",
                "content": "See",
                "images": ["iVBORw0KGgo="],
            },
        ],
    },
    "closed-thinking": {
        "model": "m",
        "messages": [*HELLO, {"role": "assistant", "content": "Yes", "thinking": "Hm."}, *HELLO],
    },
    "settings": {
        "model": "m",
        "messages": HELLO,
        "stream": True,
        "think": True,
        "format": {"type": "object"},
        "keep_alive": "5m",
        "options": {
            "num_ctx": 8192,
            "num_predict": 9,
            "temperature": 0,
            "top_k": 4,
            "top_p": 0.5,
            "seed": 1,
            "stop": ["END"],
        },
    },
    "level-of-thinking": {"model": "m", "messages": HELLO, "think": "low", "keep_alive": -1},
    "unknown-members": {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello", "mood": "calm"}],
        "template": "{{ .Prompt }}",
    },
}

COHERE: dict[str, Any] = {
    "minimal": {"model": "m", "messages": HELLO},
    "streamed": {"model": "m", "messages": HELLO, "stream": True},
    "system": {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, *HELLO]},
    "contents": {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "See."},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.webp"}},
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64,iVBORw0=", "detail": "low"},
                    },
                ],
            }
        ],
    },
    "plan": {
        "model": "m",
        "tools": [FUNCTION],
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "tool_plan": "I will look.",
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"A"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "rain"},
        ],
    },
    "documents-in-result": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "c",
                "content": [
                    {"type": "document", "document": {"id": "1", "data": {"sky": "grey"}}},
                    {"type": "text", "text": "That is all."},
                ],
            },
        ],
    },
    "thinking": {
        "model": "m",
        "thinking": {"type": "enabled", "token_budget": 100},
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm."},
                    {"type": "text", "text": "Yes"},
                ],
            },
            {"role": "user", "content": "More"},
        ],
    },
    "citations": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "Tides rise.",
                "citations": [{"start": 0, "end": 5, "text": "Tides", "sources": []}],
            },
            {"role": "user", "content": "More"},
        ],
    },
    "choice-required": {
        "model": "m",
        "messages": HELLO,
        "tools": [FUNCTION],
        "tool_choice": "REQUIRED",
        "strict_tools": True,
    },
    "choice-none": {"model": "m", "messages": HELLO, "tools": [FUNCTION], "tool_choice": "NONE"},
    "settings": {
        "model": "m",
        "messages": HELLO,
        "documents": ["one", {"id": "2", "data": {"text": "two"}}],
        "citation_options": {"mode": "FAST"},
        "response_format": {"type": "json_object"},
        "safety_mode": "OFF",
        "max_tokens": 9,
        "stop_sequences": ["END"],
        "temperature": 0.5,
        "seed": 1,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.5,
        "k": 4,
        "p": 0.5,
        "priority": 1,
    },
    "unknown-members": {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello", "mood": "calm"}],
        "raw_prompting": True,
    },
}

MISTRAL: dict[str, Any] = {
    "minimal": {"model": "m", "messages": HELLO},
    "prefix": {
        "model": "m",
        "messages": [*HELLO, {"role": "assistant", "content": "Once", "prefix": True}],
    },
    "contents": {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "See."},
                    {"type": "image_url", "image_url": "https://example.com/a.png"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
                    {"type": "document_url", "document_url": "https://example.com/a.pdf"},
                    {
                        "type": "document_url",
                        "document_url": "data:application/pdf;base64,JVBERi0=",
                        "document_name": "a.pdf",
                    },
                    {"type": "file", "file_id": "0b8f6c1e-5f8c-4a52-9a65-0a2f8f6f5f3a"},
                    {"type": "input_audio", "input_audio": "AAAA"},
                    {"type": "input_audio", "input_audio": "https://example.com/a.mp3"},
                ],
            }
        ],
    },
    "thinking": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "Hm."}],
                        "signature": "c2ln",
                    },
                    {"type": "text", "text": "Yes"},
                ],
            },
            {"role": "user", "content": "More"},
        ],
    },
    "references": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [
                            {"type": "text", "text": "Hm."},
                            {"type": "reference", "reference_ids": [1]},
                        ],
                        "closed": True,
                    },
                    {"type": "text", "text": "Yes"},
                    {"type": "reference", "reference_ids": [1, "b"]},
                ],
            },
            {"role": "user", "content": "More"},
        ],
    },
    "tool-turn": {
        "model": "m",
        "tools": [FUNCTION],
        "tool_choice": "any",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "abcdefghi",
                        "type": "function",
                        "function": {"name": "weather", "arguments": {"city": "A"}},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "abcdefghi", "name": "weather", "content": "rain"},
        ],
    },
    "ids-missing": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "null", "function": {"name": "f", "arguments": "{}"}},
                    {"function": {"name": "f", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "name": "f", "content": "1"},
            {"role": "tool", "name": "f", "content": "2"},
        ],
    },
    "result-contents": {
        "model": "m",
        "messages": [
            *HELLO,
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "abcdefghi",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "abcdefghi",
                "name": "f",
                "content": [
                    {"type": "text", "text": "See"},
                    {"type": "image_url", "image_url": "https://example.com/a.png"},
                ],
            },
        ],
    },
    "named-tool": {
        "model": "m",
        "messages": HELLO,
        "tools": [FUNCTION, {"type": "web_search"}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
    },
    "settings": {
        "model": "m",
        "messages": HELLO,
        "max_tokens": 9,
        "random_seed": 1,
        "stop": "END",
        "safe_prompt": True,
        "prompt_mode": "reasoning",
        "response_format": {"type": "json_object"},
        "n": 2,
        "stream": True,
    },
    "unknown-members": {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello", "mood": "calm"}],
        "colour": "blue",
    },
}

FOREIGN: dict[str, dict[str, Any]] = {
    "anthropic-messages": ANTHROPIC,
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "bedrock-converse": BEDROCK,
    "ollama": OLLAMA,
    "cohere-chat": COHERE,
    "mistral": MISTRAL,
}
"""All bodies: by dialect, by name."""
