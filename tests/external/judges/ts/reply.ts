// Answer of a client, and the response that it is made from.
//
// In: one line of the manifest.  Out: a `fetch` that answers any request with the recorded bytes, or
// that sends it to another address.
// Law: a recorded body arrives in reads of PIECE bytes, so that events are cut at any place.

import { readFileSync } from "node:fs";

// Bytes of one read: smaller than most events with arguments, and no multiple of a line.
const PIECE = 1000;

interface Recorded {
  file: string;
  status: number;
  headers: Record<string, string>;
}

// The headers are those of the request, beside the client's own.
interface Served {
  url: string;
  headers: Record<string, string>;
}

export type Case = { client: string; name: string } & (Recorded | Served);

// The streams of the runs of an agent on one conversation, which answer one request after another,
// and the decisions of a person before each run but the first.
export interface Talk {
  client: string;
  name: string;
  files: string[];
  decisions: Record<string, { approved: boolean; reason?: string }>[];
}

// A call has its arguments as text where the client keeps text, else as the client's value.
export interface Call {
  id: string | null;
  name: string;
  text?: string;
  value?: unknown;
}

export interface Answer {
  text: string;
  thinking: string;
  calls: Call[];
  finish: string | null;
  input_tokens: number | null;
  output_tokens: number | null;
}

export type Fetch = typeof globalThis.fetch;
export type Judge = (fetch: Fetch) => Promise<Answer>;

// The judge of Gemini replaces the global one.
const send = globalThis.fetch;

export function emptyAnswer(): Answer {
  return { text: "", thinking: "", calls: [], finish: null, input_tokens: null, output_tokens: null };
}

export function fetchOf(one: Case): Fetch {
  return "url" in one ? sendingTo(one) : answeringWith(one);
}

function sendingTo(one: Served): Fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const asked = new URL(request.url);
    const headers = new Headers(request.headers);
    for (const [name, value] of Object.entries(one.headers)) {
      headers.set(name, value);
    }
    return await send(new URL(asked.pathname + asked.search, one.url), {
      method: request.method,
      headers,
      body: await request.text(),
      signal: request.signal,
    });
  };
}

function answeringWith(one: Recorded): Fetch {
  return async () => responseOf(one);
}

// Counts the requests, of which a client must send one for each file.
export function answeringInTurn(files: string[]): { fetch: Fetch; count: () => number } {
  let count = 0;
  const fetch: Fetch = async () => {
    const file = files[count];
    count += 1;
    return file === undefined
      ? new Response("a request without an answer", { status: 500 })
      : responseOf({ file, status: 200, headers: { "content-type": "text/event-stream" } });
  };
  return { fetch, count: () => count };
}

function responseOf(one: Recorded): Response {
  const body = readFileSync(one.file);
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= body.length) {
        controller.close();
        return;
      }
      controller.enqueue(new Uint8Array(body.subarray(at, at + PIECE)));
      at += PIECE;
    },
  });
  return new Response(stream, { status: one.status, headers: one.headers });
}
