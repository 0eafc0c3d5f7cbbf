// The official OpenAI client: Chat and Responses, streamed by `stream()` and whole by `create()`.

import OpenAI from "openai";

import { emptyAnswer, type Answer, type Fetch } from "./reply.ts";

function clientOf(fetch: Fetch): OpenAI {
  return new OpenAI({ apiKey: "key", maxRetries: 0, fetch });
}

// Members outside the client's types.
interface Reasoned {
  reasoning_content?: string | null;
}

// A transcript is the text of audio.
interface Spoken {
  audio?: { transcript?: string } | null;
}

function ofCompletion(
  completion: OpenAI.ChatCompletion,
  thinking: string,
  transcript: string,
): Answer {
  const answer = emptyAnswer();
  const choice = completion.choices[0]!;
  answer.text = (choice.message.content ?? "") + (choice.message.refusal ?? "") + transcript;
  answer.thinking = thinking;
  answer.finish = choice.finish_reason;
  answer.input_tokens = completion.usage?.prompt_tokens ?? null;
  answer.output_tokens = completion.usage?.completion_tokens ?? null;
  for (const call of choice.message.tool_calls ?? []) {
    if (call.type === "function") {
      answer.calls.push({ id: call.id, name: call.function.name, text: call.function.arguments });
    } else {
      const { name, input } = call.custom;
      answer.calls.push({ id: call.id, name, value: { input } });
    }
  }
  return answer;
}

export async function chat(fetch: Fetch): Promise<Answer> {
  const stream = clientOf(fetch).chat.completions.stream({
    model: "m",
    messages: [{ role: "user", content: "?" }],
    stream_options: { include_usage: true },
  });
  // The client's snapshot keeps only the last fragment of a member outside its types.
  let thinking = "";
  let transcript = "";
  stream.on("chunk", (chunk) => {
    transcript += (chunk.choices[0]?.delta as Spoken | undefined)?.audio?.transcript ?? "";
    thinking += (chunk.choices[0]?.delta as Reasoned | undefined)?.reasoning_content ?? "";
  });
  const completion = await stream.finalChatCompletion();
  return ofCompletion(completion as OpenAI.ChatCompletion, thinking, transcript);
}

export async function wholeChat(fetch: Fetch): Promise<Answer> {
  const completion = await clientOf(fetch).chat.completions.create({
    model: "m",
    messages: [{ role: "user", content: "?" }],
  });
  const message = completion.choices[0]?.message as (Reasoned & Spoken) | undefined;
  return ofCompletion(
    completion,
    message?.reasoning_content ?? "",
    message?.audio?.transcript ?? "",
  );
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
      case "response.reasoning_text.delta":
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
  check(answer: Answer, response: OpenAI.Responses.Response): void {
    const inputs = response.output.every((item, index) => {
      const seen = this.inputs.get(index) ?? "";
      return item.type === "function_call"
        ? seen === item.arguments
        : item.type !== "custom_tool_call" || seen === item.input;
    });
    if (!inputs || this.text !== answer.text || this.thinking !== answer.thinking) {
      throw new Error("the deltas are not the final response");
    }
  }
}

// Name of a called tool, with the namespace that the client reads beside it.
function toolName({ name, namespace }: { name: string; namespace?: string }): string {
  return namespace === undefined || namespace === name ? name : `${namespace}__${name}`;
}

function ofResponse(response: OpenAI.Responses.Response): Answer {
  const answer = emptyAnswer();
  answer.finish = response.incomplete_details?.reason ?? response.status ?? null;
  answer.input_tokens = response.usage?.input_tokens ?? null;
  answer.output_tokens = response.usage?.output_tokens ?? null;
  for (const item of response.output) {
    if (item.type === "message") {
      for (const part of item.content) {
        answer.text += part.type === "output_text" ? part.text : part.refusal;
      }
    } else if (item.type === "reasoning") {
      const parts = [...item.summary, ...(item.content ?? [])];
      answer.thinking += parts.map((part) => part.text).join("");
    } else if (item.type === "function_call") {
      answer.calls.push({ id: item.call_id, name: toolName(item), text: item.arguments });
    } else if (item.type === "custom_tool_call") {
      answer.calls.push({ id: item.call_id, name: toolName(item), value: { input: item.input } });
    }
  }
  return answer;
}

export async function responses(fetch: Fetch): Promise<Answer> {
  const deltas = new Deltas();
  const stream = clientOf(fetch).responses.stream({ model: "m", input: "?" });
  stream.on("event", (event) => deltas.add(event));
  const response = await stream.finalResponse();
  const answer = ofResponse(response);
  deltas.check(answer, response);
  return answer;
}

export async function wholeResponses(fetch: Fetch): Promise<Answer> {
  return ofResponse(await clientOf(fetch).responses.create({ model: "m", input: "?" }));
}
