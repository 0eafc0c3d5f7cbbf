// The official Anthropic client: `messages.stream()` and its final message.

import Anthropic from "@anthropic-ai/sdk";

import { emptyAnswer, type Answer } from "./reply.ts";

export async function messages(fetch: () => Promise<Response>): Promise<Answer> {
  const answer = emptyAnswer();
  const client = new Anthropic({ apiKey: "key", maxRetries: 0, fetch });
  const stream = client.messages.stream({
    model: "m",
    max_tokens: 1,
    messages: [{ role: "user", content: "?" }],
  });
  const message = await stream.finalMessage();
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
