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

// Text of all deltas of an answer, in the order of the items.
class Deltas {
  text = "";
  thinking = "";
  readonly inputs = new Map<number, string>();

  add(event: OpenAI.Responses.ResponseStreamEvent): void {
    switch (event.type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.text += event.delta;
        break;
      case "response.reasoning_summary_text.delta":
        this.thinking += event.delta;
        break;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta": {
        const before = this.inputs.get(event.output_index) ?? "";
        this.inputs.set(event.output_index, before + event.delta);
        break;
      }
    }
  }

  // The client shows the deltas while they arrive, and at the end the final response.
  check(answer: Answer, inputs: Map<number, string>): void {
    const same =
      this.text === answer.text &&
      this.thinking === answer.thinking &&
      [...inputs].every(([index, input]) => (this.inputs.get(index) ?? "") === input);
    if (!same) {
      throw new Error("the deltas are not the final response");
    }
  }
}

export async function responses(fetch: Fetch): Promise<Answer> {
  const answer = emptyAnswer();
  const deltas = new Deltas();
  const inputs = new Map<number, string>();
  const stream = clientOf(fetch).responses.stream({ model: "m", input: "?" });
  stream.on("event", (event) => deltas.add(event));
  const response = await stream.finalResponse();
  answer.finish = response.incomplete_details?.reason ?? response.status ?? null;
  answer.input_tokens = response.usage?.input_tokens ?? null;
  answer.output_tokens = response.usage?.output_tokens ?? null;
  for (const [index, item] of response.output.entries()) {
    if (item.type === "message") {
      for (const part of item.content) {
        answer.text += part.type === "output_text" ? part.text : part.refusal;
      }
    } else if (item.type === "reasoning") {
      answer.thinking += item.summary.map((part) => part.text).join("");
    } else if (item.type === "function_call") {
      inputs.set(index, item.arguments);
      answer.calls.push({ id: item.call_id, name: item.name, text: item.arguments });
    } else if (item.type === "custom_tool_call") {
      inputs.set(index, item.input);
      answer.calls.push({ id: item.call_id, name: item.name, value: { input: item.input } });
    }
  }
  deltas.check(answer, inputs);
  return answer;
}
