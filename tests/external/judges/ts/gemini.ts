// The official Gemini client: the chunks of `models.generateContentStream()`, and the one answer of
// `models.generateContent()`.

import { GoogleGenAI, type GenerateContentResponse } from "@google/genai";

import { emptyAnswer, type Answer, type Fetch } from "./reply.ts";

// The client would continue an answer that pauses by itself, and each request gets the same answer here.
const REQUEST = { model: "m", contents: "?", config: { automaticContinuation: false } };
// One client reads all streams, one after another: it calls the global `fetch`.
const client = new GoogleGenAI({ apiKey: "key" });

function add(answer: Answer, chunk: GenerateContentResponse): void {
  for (const candidate of chunk.candidates ?? []) {
    for (const part of candidate.content?.parts ?? []) {
      if (part.thought) {
        answer.thinking += part.text ?? "";
      } else {
        answer.text += part.text ?? "";
      }
      if (part.functionCall) {
        const { id, name, args } = part.functionCall;
        answer.calls.push({ id: id ?? null, name: name ?? "", value: args ?? {} });
      }
    }
    answer.finish = candidate.finishReason ?? answer.finish;
  }
  if (chunk.promptFeedback?.blockReason) {
    answer.finish = "SAFETY";
  }
  const usage = chunk.usageMetadata;
  if (usage) {
    answer.input_tokens = usage.promptTokenCount ?? null;
    if (usage.candidatesTokenCount !== undefined) {
      answer.output_tokens = usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0);
    }
  }
}

export async function gemini(fetch: Fetch): Promise<Answer> {
  const answer = emptyAnswer();
  globalThis.fetch = fetch;
  for await (const chunk of await client.models.generateContentStream(REQUEST)) {
    add(answer, chunk);
  }
  return answer;
}

export async function wholeGemini(fetch: Fetch): Promise<Answer> {
  const answer = emptyAnswer();
  globalThis.fetch = fetch;
  add(answer, await client.models.generateContent(REQUEST));
  return answer;
}
