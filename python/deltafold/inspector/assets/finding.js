// Search and filter of the events of a recording.
//
// In: a text, and the name of a group of events.  Out: the numbers of the events, in their order.
//
// Laws: the bytes of an event are searched, and the texts of the parts, so that words are found that
// several events carry.  Searching yields to the browser, so that typing is not delayed by a large
// recording.

import { counted, element } from "./text.js";
import { pauseBefore } from "./problems.js";

const SLICE_MILLISECONDS = 8;
const PREPARED_AFTER_MILLISECONDS = 200;
const EVENTS_A_LOOK = 64;
const GROUPS = [
  ["problems", "problems"],
  ["pauses", "pauses"],
  ["text", "text"],
  ["thinking", "thinking"],
  ["tool", "tool calls"],
  ["usage", "usage"],
  ["other", "other deltas"],
  ["none", "without deltas"],
];
const TEXT_MEMBERS = ["textDelta", "argsTextDelta"];

/** Which groups each event belongs to, as bits. */
function groupsOf(track) {
  const bits = new Uint16Array(track.count);
  const bit = Object.fromEntries(GROUPS.map(([name], index) => [name, 1 << index]));
  for (const [event, kind] of track.recording.deltas) {
    bits[event] |= bit[kind.split("_")[0]] ?? bit.other;
  }
  for (let event = 0; event < track.count; event++) {
    if (bits[event] === 0) bits[event] = bit.none;
    if (pauseBefore(track, event) > 0) bits[event] |= bit.pauses;
  }
  for (const [event] of track.recording.notes) bits[event] |= bit.problems;
  return bits;
}

/** The texts of the parts, each with the places where the pieces of its events begin. */
function spokenTexts(recording) {
  const parts = new Map();
  for (const [event, kind, payload] of recording.deltas) {
    const text = TEXT_MEMBERS.map((name) => payload[name]).find(Boolean);
    if (!text) continue;
    const key = `${kind} ${payload.toolCallId ?? payload.partIndex}`;
    if (!parts.has(key)) parts.set(key, { pieces: [], events: [], starts: [], length: 0 });
    const part = parts.get(key);
    const lower = text.toLowerCase();
    part.pieces.push(lower);
    part.events.push(event);
    part.starts.push(part.length);
    part.length += lower.length;
  }
  return [...parts.values()].map(({ pieces, events, starts }) => ({ text: pieces.join(""), events, starts }));
}

export class Finding {
  /**
   * @param {object} track the track whose events are found
   * @param {(label: string) => string} label makes a name unique on the page
   * @param {(events: number[] | null) => void} found is called with the events, null for all
   * @param {(by: number) => void} next goes to the next event that was found
   */
  constructor(track, label, found, next) {
    this.track = track;
    this.found = found;
    this.groups = null;
    this.run = 0;
    this.input = element("input", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": label("search events"),
      autocomplete: "off",
      spellcheck: "false",
    });
    this.select = element("select", { "aria-label": label("show events") });
    this.select.append(element("option", { value: "" }, "all events"));
    setTimeout(() => this.prepare(), PREPARED_AFTER_MILLISECONDS);
    this.told = element("output", { "aria-live": "polite" });
    const role = { role: "search", "aria-label": label("events to show") };
    this.box = element("div", { class: "finding", ...role }, this.input, this.select, this.told);
    this.input.addEventListener("input", () => this.search());
    this.select.addEventListener("change", () => this.search());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") this.set("", this.select.value);
      else return;
      event.preventDefault();
    });
  }

  get query() {
    return this.input.value;
  }

  get group() {
    return this.select.value;
  }

  /** Finds the groups of the events, which the page does not need when it opens. */
  prepare() {
    if (this.groups !== null) return;
    this.groups = groupsOf(this.track);
    const counts = GROUPS.map(() => 0);
    for (const bits of this.groups) {
      for (let index = 0; index < GROUPS.length; index++) counts[index] += (bits >> index) & 1;
    }
    GROUPS.forEach(([name, told], index) => {
      const count = counts[index].toLocaleString("en");
      if (counts[index] > 0) this.select.append(element("option", { value: name }, `${told} (${count})`));
    });
  }

  set(query, group) {
    if (query === this.query && group === this.group) return;
    if (group !== "") this.prepare();
    this.input.value = query;
    this.select.value = group;
    if (this.select.selectedIndex < 0) this.select.value = "";
    this.search();
  }

  search() {
    const run = ++this.run;
    const query = this.query.toLowerCase();
    const wanted = 1 << GROUPS.findIndex(([name]) => name === this.group);
    const isWanted = this.group === "" ? () => true : (event) => (this.groups[event] & wanted) !== 0;
    if (query === "" && this.group === "") {
      this.tell(null);
      return;
    }
    const needles = query === "" ? [] : this.needles(query);
    const spoken = query === "" ? null : this.spokenEvents(query);
    const { texts, frames } = this.track.recording;
    const holds = (text) => needles.some((needle) => text.includes(needle));
    const matches = (event) => {
      if (!isWanted(event)) return false;
      if (spoken === null || spoken.has(event)) return true;
      const frame = frames?.[event];
      return holds((frame ? frame.join(" ") : texts[event]).toLowerCase());
    };
    const events = [];
    let event = 0;
    const slice = () => {
      if (run !== this.run) return;
      const until = performance.now() + SLICE_MILLISECONDS;
      while (event < this.track.count && performance.now() < until) {
        const end = Math.min(this.track.count, event + EVENTS_A_LOOK);
        for (; event < end; event++) if (matches(event)) events.push(event);
      }
      if (event < this.track.count) setTimeout(slice);
      else this.tell(events);
    };
    slice();
  }

  tell(events) {
    this.told.textContent = events === null ? "" : events.length === 0 ? "none" : counted(events.length, "event");
    this.found(events);
  }

  /** Returns the forms in which a text can stand in JSON: as it is, and with its escapes. */
  needles(query) {
    const escaped = JSON.stringify(query).slice(1, -1);
    const ascii = escaped.replace(/[\u0080-\uffff]/g, (letter) => {
      return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
    });
    return [...new Set([query, escaped, ascii])];
  }

  /** Returns the events that carry a text together. */
  spokenEvents(query) {
    this.spoken ??= spokenTexts(this.track.recording);
    const found = new Set();
    for (const { text, events, starts } of this.spoken) {
      let piece = 0;
      for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
        while (piece + 1 < starts.length && starts[piece + 1] <= at) piece++;
        for (let other = piece; other < starts.length && starts[other] < at + query.length; other++) {
          found.add(events[other]);
        }
      }
    }
    return found;
  }
}
