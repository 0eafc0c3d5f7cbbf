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
  const body = readFileSync(one.file);
  return async () => {
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
  };
}
