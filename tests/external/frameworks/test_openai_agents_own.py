"""The SDK's own tests of its Chat handler, run against the adapter.

The tests are those of the source distribution. Some of them describe how the Chat handler works
inside, and fail with a reason.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SDISTS: Final = HERE.parents[2] / ".venv-frameworks" / "sdists"
FILES: Final = (
    "test_openai_chatcompletions_stream.py",
    "test_chatcompletions_stream_eof.py",
    "test_gemini_thought_signatures_stream.py",
)

DIFFERENT: Final = {
    "the events are those of the Responses API: `response.in_progress`, its ids, an item a part": (
        "test_fallback_function_call_before_text_uses_final_output_index",
        "test_fallback_function_call_keeps_index_before_streamed_call",
        "test_stream_handler_announces_assistant_message_once_for_text_and_refusal",
        "test_stream_handler_places_text_after_existing_refusal_part",
        "test_stream_response_yields_events_for_refusal_content",
        "test_stream_response_yields_events_for_text_content",
        "test_stream_response_yields_events_for_tool_call",
        "test_stream_response_yields_real_time_function_call_arguments",
    ),
    "signatures and reasoning are in `encrypted_content` and `summary`, for every provider": (
        "test_stream_captures_google_extra_content_thought_signature",
        "test_stream_captures_litellmprovider_specific_fields_thought_signature",
        "test_stream_handler_adds_third_party_reasoning_text_to_summary_item",
        "test_stream_handler_converts_third_party_reasoning_text",
        "test_stream_handler_emits_complete_signed_thinking_only_lifecycle",
        "test_stream_handler_finalizes_thinking_blocks_before_item_done",
        "test_stream_handler_ignores_explicit_null_thinking_block_type",
        "test_stream_handler_keeps_redacted_block_metadata_opaque",
        "test_stream_handler_orders_refusal_after_reasoning_and_text",
        "test_stream_handler_prefers_later_thinking_blocks_over_plaintext_reasoning",
        "test_stream_handler_prefers_reasoning_content_over_plaintext_reasoning",
        "test_stream_handler_preserves_redacted_thinking_blocks",
        "test_stream_handler_preserves_redacted_thinking_without_summary",
        "test_stream_handler_preserves_thinking_blocks_with_reasoning_summary",
        "test_stream_handler_rejects_non_string_thinking_fields",
        "test_stream_handler_segments_thinking_blocks_at_signature_deltas",
        "test_stream_response_buffers_tool_call_provider_fields",
        "test_streamed_thinking_blocks_replay_through_the_converter",
    ),
    "the Chat model has options of its own: strict validation, buffering": (
        "test_audio_delta_raises_like_the_sync_path",
        "test_buffered_audio_only_delta_raises_instead_of_completing_empty",
        "test_buffered_tool_calls_preserve_custom_tool_call_strict_error",
        "test_buffered_tool_calls_preserve_nonzero_choice_validation",
        "test_stream_handler_filters_multiple_choices_by_default",
        "test_stream_handler_rejects_multiple_choices_in_strict_mode",
        "test_stream_handler_rejects_nonzero_choice_index_in_strict_mode",
        "test_stream_response_ignores_custom_tool_call_chunks_by_default",
        "test_stream_response_passes_strict_validation_to_stream_handler",
        "test_stream_response_with_custom_tool_call_raises_in_strict_mode",
    ),
    "the counts reach the span in the adapter's model, not in its events": (
        "test_streamed_span_counts_request_on_length_truncation_without_usage",
        "test_streamed_span_preserves_usage_on_length_truncation",
        "test_stream_span_is_recorded_for_a_consumer_that_stops_at_the_terminal_event",
    ),
    "log probabilities come in the event after that of their text": (
        "test_stream_response_includes_logprobs",
    ),
    "the exception is the same, and has other words": (
        "test_handler_stream_length_is_ignored_without_internal_option",
        "test_official_stream_rejects_eof_before_terminal_choice",
    ),
    "a stream without any answer is an error": (
        "test_stream_handler_ignores_choice_without_delta",
        "test_stream_handler_keeps_empty_choice_usage_chunks",
    ),
    "a stream without a finish reason is a cut, unless `ends_without_reason` is set": (
        "test_buffered_tool_call_before_text_replays_as_single_assistant_session_message",
        "test_stream_handler_ignores_non_string_plaintext_reasoning",
        "test_stream_handler_places_refusal_after_redacted_thinking_item",
        "test_third_party_stream_preserves_eof_completion",
    ),
    "the refusal of a filter is an item of the response, without events": (
        "test_buffered_stream_content_filter_refusal_after_reasoning",
        "test_buffered_stream_synthesizes_refusal_on_content_filter",
    ),
    "annotations are kept, whatever their form and place": (
        "test_stream_handler_drops_citations_reported_before_any_text",
        "test_stream_handler_skips_unsupported_annotation_shapes",
    ),
}


def test_the_tests_of_the_chat_handler_pass_but_for_named_differences() -> None:
    (sources,) = SDISTS.glob("openai_agents-*/")
    paths = [str(HERE), str(sources), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rf",
            "-p",
            "no:cacheprovider",
            "-p",
            "handler_of_agents",
            *(f"tests/models/{name}" for name in FILES),
        ],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = set(re.findall(r"^FAILED .*::(test_\w+)", done.stdout, re.MULTILINE))
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(passed[1]) >= PASSED
    assert failed == {name for names in DIFFERENT.values() for name in names}


PASSED: Final = 60
"""Least number of the tests that pass."""
