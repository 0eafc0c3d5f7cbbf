// The runs of an agent, read by the AG-UI client.
//
// Law: a page takes the messages back that `deltafold.retry` names, as docs/agents.md says.

import { HttpAgent } from "@ag-ui/client";

import { answeringInTurn, type Talk } from "./reply.ts";

export async function agUiTalk(talk: Talk): Promise<object> {
  const { fetch, count } = answeringInTurn(talk.files);
  const agent = new HttpAgent({ url: "http://127.0.0.1/", threadId: "thread", fetch });
  const ends: object[] = [];
  let error: string | null = null;
  const subscriber: Parameters<typeof agent.runAgent>[1] = {
    onCustomEvent({ event, messages }) {
      const value: unknown = event.value;
      if (event.name !== "deltafold.retry") {
        return undefined;
      }
      const ids = (value as { messageIds?: string[] }).messageIds ?? [];
      const taken = new Set(ids);
      const calls = messages.flatMap((one) =>
        one.role === "assistant" && taken.has(one.id) ? (one.toolCalls ?? []) : [],
      );
      const callIds = new Set(calls.map((call) => call.id));
      return {
        messages: messages.filter(
          (one) => !taken.has(one.id) && !(one.role === "tool" && callIds.has(one.toolCallId)),
        ),
      };
    },
    onRunErrorEvent({ event }) {
      error = event.message;
    },
    onRunFinishedEvent({ event }) {
      ends.push({ outcome: event.outcome, metadata: event.metadata });
    },
  };
  await agent.runAgent({}, subscriber);
  for (const decisions of talk.decisions) {
    const resume = agent.pendingInterrupts.map(({ id }) => ({
      interruptId: id,
      status: "resolved" as const,
      payload: decisions[id],
    }));
    await agent.runAgent({ resume }, subscriber);
  }
  return { messages: agent.messages, ends, error, requests: count() };
}
