// The runs of an agent, read by the chat of the `ai` package, which `useChat` is made of.
//
// Law: the chat goes on by itself wherever the package's own conditions say so, so that a run which ends
// in a way that asks for another request is found.

import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  isToolUIPart,
  type ChatState,
  type ChatStatus,
  type UIMessage,
} from "ai";

import { answeringInTurn, type Talk } from "./reply.ts";

class State implements ChatState<UIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined;
  messages: UIMessage[] = [];

  pushMessage = (message: UIMessage): void => {
    this.messages = this.messages.concat(message);
  };
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.map((one, at) => (at === index ? structuredClone(message) : one));
  };
  snapshot = <T>(thing: T): T => structuredClone(thing);
}

class Chat extends AbstractChat<UIMessage> {}

async function settled(chat: Chat, count: () => number, wanted: number): Promise<void> {
  while (count() < wanted || chat.status === "submitted" || chat.status === "streaming") {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

export async function chatTalk(talk: Talk): Promise<object> {
  const { fetch, count } = answeringInTurn(talk.files);
  const state = new State();
  const finishes: (string | undefined)[] = [];
  const chat = new Chat({
    id: "chat",
    state,
    transport: new DefaultChatTransport({ api: "http://127.0.0.1/", fetch }),
    onFinish: ({ finishReason }) => {
      finishes.push(finishReason);
    },
    sendAutomaticallyWhen: (options) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
      lastAssistantMessageIsCompleteWithToolCalls(options),
  });
  await chat.sendMessage({ text: "When is high tide?" });
  let runs = 1;
  for (const decisions of talk.decisions) {
    const parts = chat.lastMessage?.parts.filter(isToolUIPart) ?? [];
    for (const part of parts) {
      const id = part.state === "approval-requested" ? part.approval.id : undefined;
      const decision = id === undefined ? undefined : decisions[id];
      if (id !== undefined && decision !== undefined) {
        await chat.addToolApprovalResponse({ id, ...decision });
      }
    }
    runs += 1;
    await settled(chat, count, runs);
  }
  return {
    messages: state.messages,
    finishes,
    error: state.error?.message ?? null,
    requests: count(),
  };
}
