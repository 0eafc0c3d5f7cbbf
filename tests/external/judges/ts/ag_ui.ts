// The AG-UI client: `HttpAgent`, with its verification of the order of events.

import { HttpAgent } from "@ag-ui/client";

import { emptyAnswer, type Answer, type Fetch } from "./reply.ts";

interface Finished {
  metadata?: { finishReason?: string };
  outcome?: { type: string; pendingToolCallIds?: string[] };
  usage?: { inputTokens?: number; outputTokens?: number }[];
}

function finishOf(event: Finished): string {
  if (event.metadata?.finishReason !== undefined) {
    return event.metadata.finishReason;
  }
  if (event.outcome?.type !== "success") {
    return event.outcome?.type ?? "none";
  }
  return event.outcome.pendingToolCallIds === undefined ? "stop" : "tool_calls";
}

export async function agUi(fetch: Fetch): Promise<Answer> {
  const answer = emptyAnswer();
  const agent = new HttpAgent({ url: "http://127.0.0.1/", fetch });
  let failure: Error | undefined;
  await agent.runAgent(
    {},
    {
      onRunErrorEvent({ event }) {
        failure = new Error(event.message);
      },
      onRunFinishedEvent({ event }) {
        const finished = event as Finished;
        answer.finish = finishOf(finished);
        answer.input_tokens = finished.usage?.[0]?.inputTokens ?? null;
        answer.output_tokens = finished.usage?.[0]?.outputTokens ?? null;
      },
    },
  );
  if (failure) {
    throw failure;
  }
  for (const message of agent.messages) {
    if (message.role === "assistant") {
      answer.text += message.content ?? "";
      for (const call of message.toolCalls ?? []) {
        const { name, arguments: text } = call.function;
        answer.calls.push({ id: call.id, name, text });
      }
    } else if (message.role === "reasoning") {
      answer.thinking += message.content;
    }
  }
  return answer;
}
