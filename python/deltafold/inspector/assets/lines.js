// An event on one line: its type, and what it brings.
//
// In: the text of an event, or the content of its binary frame, and its deltas.
// Out: the type, and the members that are new, each with its name, its value, and whether a delta carries
// it: those that its deltas carry come first, then those that
// differ from the last event of the same type.  The one text that an event brings needs no name.
//
// Law: the cost of a line is bounded, whatever the length of the event.

import { beginning } from "./text.js";

const PREVIEW_CHARACTERS = 200;
const PARSED_CHARACTERS = 32768;
const COMPARED_CHARACTERS = 4000;
const CUT_CHARACTERS = 40;
const LEAVES = 80;
const MEMBERS_SHOWN = 6;
const EVENTS_BACK = 8;
const KEPT_EVENTS = 4000;
const SHORTEST_CARRIED = 2;
const FIELD = /^(?:event|data|id|retry)?:/;

/** Returns the name and the content of an event; white space alone is shown with escapes. */
export function contentOf(text, frame) {
  if (frame) return { name: frame[0], content: frame[1] };
  if (!FIELD.test(text)) {
    // An element of an array has a bracket or a comma beside it.
    const alone = text.replace(/^[\s,[]+(?=\{)/, "").replace(/(?<=\})[\s,\]]+$/, "");
    return { name: "", content: alone.trim() === "" ? JSON.stringify(text) : alone };
  }
  let name = "";
  const data = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  return { name, content: data.length > 0 ? data.join("\n") : text.trim() || JSON.stringify(text) };
}

/** Returns the JSON of a content, undefined if it is too long or no object. */
export function parsed(content) {
  if (content.length > PARSED_CHARACTERS) return undefined;
  try {
    const value = JSON.parse(content);
    return value !== null && typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Lines of the events of a recording. */
export class EventLines {
  constructor(recording) {
    this.recording = recording;
    this.known = new Map();
  }

  /** Returns the type of an event and what it brings, as pairs of a member and its value. */
  line(event, deltas) {
    const { type, content, leaves } = this.read(event);
    if (leaves === null) {
      const previous = event > 0 ? this.read(event - 1).content : "";
      return { type, members: [["", firstDifferent(content, previous), true]] };
    }
    const carried = deltas.flatMap(([, , payload]) => Object.values(payload)).filter((one) => typeof one === "string");
    const [brought, other] = [[], []];
    const before = this.before(event, type);
    for (const [path, value] of leaves) {
      if (isCarried(value, carried)) brought.push([path, value]);
      else if (before === null || before.get(path) !== value) other.push([path, value]);
    }
    const isNamed = type === "" || brought.length !== 1;
    const members = [...brought, ...other].slice(0, MEMBERS_SHOWN);
    return {
      type,
      members: members.map(([path, value], place) => {
        const name = isNamed || place > 0 ? lastName(path) : "";
        return [name, shown(value), brought.length === 0 || place < brought.length];
      }),
    };
  }

  read(event) {
    let read = this.known.get(event);
    if (read === undefined) {
      const text = this.recording.texts[event].slice(0, PARSED_CHARACTERS + 1);
      const frame = this.recording.frames?.[event];
      const { name, content } = contentOf(text, frame);
      const value = parsed(content);
      const own = typeof value?.type === "string" ? value.type : "";
      const leaves = value === undefined ? null : leavesOf(value);
      // A frame of InvokeModel is a chunk, whatever it holds.
      const type = frame ? own || name : name || own;
      for (const member of ["type", "event_type"]) if (leaves?.get(member) === type) leaves.delete(member);
      read = { type, content, leaves };
      if (this.known.size >= KEPT_EVENTS) this.known.clear();
      this.known.set(event, read);
    }
    return read;
  }

  /** Returns the leaves of the last event of a type, null if there is none near. */
  before(event, type) {
    for (let other = event - 1; other >= Math.max(0, event - EVENTS_BACK); other--) {
      const read = this.read(other);
      if (read.leaves !== null && read.type === type) return read.leaves;
    }
    return null;
  }
}

/** Returns the values of a JSON value that are no objects, by their paths. */
function leavesOf(value) {
  const leaves = new Map();
  const walk = (path, one) => {
    if (leaves.size >= LEAVES) return;
    const isHolder = one !== null && typeof one === "object";
    if (!isHolder) leaves.set(path, one);
    else for (const [name, member] of Object.entries(one)) walk(path === "" ? name : `${path}.${name}`, member);
  };
  walk("", value);
  return leaves;
}

function isCarried(value, carried) {
  if (typeof value !== "string" || value === "") return false;
  return carried.some((text) => text === value || (text.length >= SHORTEST_CARRIED && value.includes(text)));
}

/** Returns the last name of a path; the members of a list have numbers, which are none. */
function lastName(path) {
  return path.split(".").filter((name) => !/^\d+$/.test(name)).pop() ?? path;
}

function shown(value) {
  return JSON.stringify(typeof value === "string" ? value.slice(0, PREVIEW_CHARACTERS + 1) : value);
}

/** Returns a text that is no JSON from where it differs from the one before; of one that was cut, its end. */
function firstDifferent(text, previous) {
  const most = Math.min(text.length, previous.length, COMPARED_CHARACTERS);
  let same = 0;
  while (same < most && text[same] === previous[same]) same++;
  const isCut = same === text.length && same < previous.length;
  const skipped = isCut ? Math.max(0, same - CUT_CHARACTERS) : same === most && same < COMPARED_CHARACTERS ? 0 : same;
  const rest = text.slice(skipped, skipped + 2 * PREVIEW_CHARACTERS).trim();
  return beginning((skipped > 0 ? "…" : "") + rest, PREVIEW_CHARACTERS);
}
