// The official OpenAI client: `chat.completions.stream()` and `responses.stream()`.

import OpenAI from "openai";

import { emptyAnswer, type Answer } from "./reply.ts";

type Fetch = () => Promise<Response>;

function clientOf(fetch: Fetch): OpenAI {
  return new OpenAI({ apiKey: "key", maxRetries: 0, fetch });
}

export async function chat(fetch: Fetch): Promise<Answer> {
  const answer = emptyAnswer();
  const stream = clientOf(fetch).chat.completions.stream({
    model: "m",
    messages: [{ role: "user", content: "?" }],
  });
  // The client's snapshot keeps only the last fragment of a member outside its types.
  stream.on("chunk", (chunk) => {
    const delta = chunk.choices[0]?.delta as { reasoning_content?: string } | undefined;
    answer.thinking += delta?.reasoning_content ?? "";
  });
  const completion = await stream.finalChatCompletion();
  const choice = completion.choices[0]!;
  answer.text = (choice.message.content ?? "") + (choice.message.refusal ?? "");
  answer.finish = choice.finish_reason;
  answer.input_tokens = completion.usage?.prompt_tokens ?? null;
  answer.output_tokens = completion.usage?.completion_tokens ?? null;
  for (const call of choice.message.tool_calls ?? []) {
    if (call.type === "function") {
      answer.calls.push({ id: call.id, name: call.function.name, text: call.function.arguments });
    } else {
      const { name, input } = (call as OpenAI.ChatCompletionMessageCustomToolCall).custom;
      answer.calls.push({ id: call.id, name, value: { input } });
    }
  }
  return answer;
}

export async function responses(fetch: Fetch): Promise<Answer> {
  const answer = emptyAnswer();
  const stream = clientOf(fetch).responses.stream({ model: "m", input: "?" });
  const response = await stream.finalResponse();
  answer.finish = response.incomplete_details?.reason ?? response.status ?? null;
  answer.input_tokens = response.usage?.input_tokens ?? null;
  answer.output_tokens = response.usage?.output_tokens ?? null;
  for (const item of response.output) {
    if (item.type === "message") {
      for (const part of item.content) {
        answer.text += part.type === "output_text" ? part.text : part.refusal;
      }
    } else if (item.type === "reasoning") {
      answer.thinking += item.summary.map((part) => part.text).join("");
    } else if (item.type === "function_call") {
      answer.calls.push({ id: item.call_id, name: item.name, text: item.arguments });
    } else if (item.type === "custom_tool_call") {
      answer.calls.push({ id: item.call_id, name: item.name, value: { input: item.input } });
    }
  }
  return answer;
}
