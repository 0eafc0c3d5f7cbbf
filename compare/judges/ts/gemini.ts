// The official Gemini client: the chunks of `models.generateContentStream()`.

import { GoogleGenAI } from "@google/genai";

import { emptyAnswer, type Answer } from "./reply.ts";

// One client reads all streams, one after another: it calls the global `fetch`.
const client = new GoogleGenAI({ apiKey: "key" });

export async function gemini(fetch: () => Promise<Response>): Promise<Answer> {
  const answer = emptyAnswer();
  globalThis.fetch = fetch;
  const chunks = await client.models.generateContentStream({ model: "m", contents: "?" });
  for await (const chunk of chunks) {
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
  return answer;
}
