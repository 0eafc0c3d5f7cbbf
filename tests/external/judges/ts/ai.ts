// The `ai` package: `DefaultChatTransport` and `readUIMessageStream`, the way of `useChat`.

import {
  DefaultChatTransport,
  isToolUIPart,
  getToolName,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
} from "ai";

import { emptyAnswer, type Answer, type Fetch } from "./reply.ts";

interface Metadata {
  usage?: { inputTokens: number; outputTokens: number };
}

export async function uiMessages(fetch: Fetch): Promise<Answer> {
  const answer = emptyAnswer();
  const transport = new DefaultChatTransport<UIMessage<Metadata>>({ fetch });
  const chunks = await transport.sendMessages({
    trigger: "submit-message",
    chatId: "chat",
    messageId: undefined,
    messages: [],
    abortSignal: undefined,
  });
  // The message that the package builds lacks the finish reason.
  const watched = chunks.pipeThrough(
    new TransformStream<UIMessageChunk, UIMessageChunk>({
      transform(chunk, controller) {
        if (chunk.type === "finish") {
          answer.finish = chunk.finishReason ?? null;
        } else if (chunk.type === "abort") {
          controller.error(new Error(chunk.reason));
          return;
        }
        controller.enqueue(chunk);
      },
    }),
  );
  let message: UIMessage<Metadata> | undefined;
  for await (message of readUIMessageStream<UIMessage<Metadata>>({
    stream: watched,
    terminateOnError: true,
  }));
  answer.input_tokens = message?.metadata?.usage?.inputTokens ?? null;
  answer.output_tokens = message?.metadata?.usage?.outputTokens ?? null;
  for (const part of message?.parts ?? []) {
    if (part.type === "text") {
      answer.text += part.text;
    } else if (part.type === "reasoning") {
      answer.thinking += part.text;
    } else if (isToolUIPart(part)) {
      const call = { id: part.toolCallId, name: getToolName(part) };
      // Arguments that are no object are kept as the text that they are, beside the error.
      answer.calls.push(
        part.state === "output-error" && typeof part.input === "string"
          ? { ...call, text: part.input }
          : { ...call, value: part.input },
      );
    }
  }
  return answer;
}
