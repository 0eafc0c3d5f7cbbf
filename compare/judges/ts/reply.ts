// Answer of a client, and the recorded response that it is made from.
//
// In: one line of the manifest.  Out: a `fetch` that answers any request with the recorded bytes.
// Law: the body arrives in reads of PIECE bytes, so that events are cut at any place.

import { readFileSync } from "node:fs";

// Bytes of one read: smaller than most events with arguments, and no multiple of a line.
const PIECE = 1000;

export interface Case {
  client: string;
  name: string;
  file: string;
  status: number;
  headers: Record<string, string>;
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

export type Judge = (fetch: () => Promise<Response>) => Promise<Answer>;

export function emptyAnswer(): Answer {
  return { text: "", thinking: "", calls: [], finish: null, input_tokens: null, output_tokens: null };
}

export function fetchOf(one: Case): () => Promise<Response> {
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
