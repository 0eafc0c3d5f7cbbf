// The official Anthropic client: `messages.stream()` with its final message, and `messages.create()`.

import Anthropic from "@anthropic-ai/sdk";

import { emptyAnswer, type Answer, type Fetch } from "./reply.ts";

const REQUEST = {
  model: "m",
  max_tokens: 1,
  messages: [{ role: "user" as const, content: "?" }],
};

function clientOf(fetch: Fetch): Anthropic {
  return new Anthropic({ apiKey: "key", maxRetries: 0, fetch });
}

function ofMessage(message: Anthropic.Message): Answer {
  const answer = emptyAnswer();
  const usage = message.usage;
  answer.finish = message.stop_reason;
  answer.input_tokens =
    usage.input_tokens +
    (usage.cache_read_input_tokens ?? 0) +
    (usage.cache_creation_input_tokens ?? 0);
  answer.output_tokens = usage.output_tokens;
  for (const block of message.content) {
    if (block.type === "text") {
      answer.text += block.text;
    } else if (block.type === "thinking") {
      answer.thinking += block.thinking;
    } else if (block.type === "tool_use") {
      answer.calls.push({ id: block.id, name: block.name, value: block.input });
    }
  }
  return answer;
}

export async function messages(fetch: Fetch): Promise<Answer> {
  return ofMessage(await clientOf(fetch).messages.stream(REQUEST).finalMessage());
}

export async function wholeMessages(fetch: Fetch): Promise<Answer> {
  return ofMessage(await clientOf(fetch).messages.create(REQUEST));
}
