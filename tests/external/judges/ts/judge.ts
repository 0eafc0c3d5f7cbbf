// Lets the official TypeScript clients read transcoded streams.
//
// usage: node judge.ts manifest.jsonl answers.jsonl
//
// In: a manifest, one stream or request a line (`Case`), or the runs of an agent (`Talk`).  Out: one
// line for each, in order: {client, name, answer} or {client, name, raised}, and retry_after where the
// error has that header.  A client that does not end within PATIENCE ends the program with code 1.

import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

import { agUi } from "./ag_ui.ts";
import { uiMessages } from "./ai.ts";
import { messages, wholeMessages } from "./anthropic.ts";
import { gemini, wholeGemini } from "./gemini.ts";
import { chat, responses, wholeChat, wholeResponses } from "./openai.ts";
import { fetchOf, type Case, type Judge, type Talk } from "./reply.ts";
import { agUiTalk } from "./talk_ag_ui.ts";
import { chatTalk } from "./talk_ai.ts";

const PATIENCE = 30_000;

const JUDGES: Record<string, Judge> = {
  "openai-chat": chat,
  "openai-responses": responses,
  "anthropic-messages": messages,
  gemini,
  "ai-sdk": uiMessages,
  "ag-ui": agUi,
  "openai-chat (whole)": wholeChat,
  "openai-responses (whole)": wholeResponses,
  "anthropic-messages (whole)": wholeMessages,
  "gemini (whole)": wholeGemini,
};

const TALKS: Record<string, (talk: Talk) => Promise<object>> = {
  "ai-sdk (run)": chatTalk,
  "ag-ui (run)": agUiTalk,
};

async function read(one: Case | Talk): Promise<object> {
  const talk = "files" in one ? TALKS[one.client] : undefined;
  if ("files" in one && talk !== undefined) {
    return await talk(one);
  }
  const judge = JUDGES[one.client];
  if (judge === undefined || "files" in one) {
    throw new Error(`no client for ${one.client}`);
  }
  return await judge(fetchOf(one));
}

function retryAfter(error: unknown): string | null {
  const headers = (error as { headers?: unknown } | undefined)?.headers;
  return headers instanceof Headers ? headers.get("retry-after") : null;
}

async function judged(one: Case | Talk): Promise<object> {
  const timer = setTimeout(() => {
    process.stderr.write(`${one.client} does not end: ${one.name}\n`);
    process.exit(1);
  }, PATIENCE);
  try {
    return { client: one.client, name: one.name, answer: await read(one) };
  } catch (error) {
    const kind = error instanceof Error ? error.constructor.name : typeof error;
    const raised = `${kind}: ${error instanceof Error ? error.message : String(error)}`;
    return { client: one.client, name: one.name, raised, retry_after: retryAfter(error) };
  } finally {
    clearTimeout(timer);
  }
}

const [manifest, answers] = process.argv.slice(2);
if (manifest === undefined || answers === undefined) {
  throw new Error("usage: node judge.ts manifest.jsonl answers.jsonl");
}
// Clients report on the console what they also throw.
console.warn = console.error = () => undefined;
const output = openSync(answers, "w");
for (const line of readFileSync(manifest, "utf-8").split("\n")) {
  if (line !== "") {
    writeSync(output, `${JSON.stringify(await judged(JSON.parse(line) as Case | Talk))}\n`);
  }
}
closeSync(output);
