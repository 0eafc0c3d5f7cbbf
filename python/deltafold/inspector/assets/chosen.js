// What one event holds: its problems, its bytes, its content as JSON, and its deltas.
//
// In: the number of an event.  Out: an element.
//
// Law: all bytes of the event are shown; of many deltas the first ones are.

import { copyButton } from "./copying.js";
import { contentOf, parsed } from "./lines.js";
import { kindOf, markOf, pauseBefore, titleOf } from "./problems.js";
import { GrowingText, counted, element, inSeconds, visible } from "./text.js";

const DELTAS_SHOWN = 50;
const ENDINGS = {
  end: "end of the body",
  cut: "the connection was closed here",
  reset: "the connection was reset here",
  stall: "nothing more came",
};

/** Returns how a body ended, in words. */
export function endOf(recording) {
  return ENDINGS[recording.ending] ?? recording.ending;
}

export class ChosenEvent {
  /** @param {(event: number) => [number, number]} deltasOf returns the range of an event's deltas */
  constructor(track, label, deltasOf) {
    this.track = track;
    this.recording = track.recording;
    this.deltasOf = deltasOf;
    this.box = element("div", { class: "detail", tabindex: "0", role: "region", "aria-label": label });
  }

  show(event, notes) {
    if (event < 0) {
      this.box.replaceChildren(element("p", {}, "before the first event"));
      return;
    }
    const isEnd = event === this.track.count - 1;
    const place = element("p", { class: "place" }, isEnd ? endOf(this.recording) : this.place(event));
    const made = [place, ...notes.map((note) => this.note(note))];
    const pause = pauseBefore(this.track, event);
    if (pause > 0) made.push(element("p", { class: "note pause" }, markOf("pause", `pause of ${inSeconds(pause)} before`)));
    if (!isEnd) {
      place.append(" ", copyButton("event", () => this.textOf(event)));
      made.push(...this.content(event));
    }
    const [from, to] = this.deltasOf(event);
    for (const [, kind, payload] of this.recording.deltas.slice(from, Math.min(to, from + DELTAS_SHOWN))) {
      made.push(
        element(
          "div",
          { class: "titled" },
          element("p", { class: "delta" }, `delta ${kind}`),
          copyButton("delta", () => JSON.stringify({ kind, payload }, null, 2)),
        ),
        textBox("json", visible(JSON.stringify(payload, null, 1))),
      );
    }
    if (to - from > DELTAS_SHOWN) made.push(element("p", {}, `and ${counted(to - from - DELTAS_SHOWN, "more delta")}`));
    this.box.replaceChildren(...made);
    this.box.scrollTop = 0;
  }

  /** Returns the text of an event for the clipboard: of a binary frame its content. */
  textOf(event) {
    return this.recording.frames?.[event]?.[1] ?? this.recording.texts[event] ?? "";
  }

  note(note) {
    const [, level, code, text, offset] = note;
    const place = offset === null ? "" : ` (at byte ${offset})`;
    const made = element("p", { class: `note ${level}` }, markOf(kindOf(note), `${titleOf(note)}: ${visible(text)}${place}`));
    const advice = level === "error" ? (this.recording.answer?.error?.advice ?? "") : "";
    // The line begins with the code and the message, unless they had to be shortened.
    const rest = advice.startsWith(`${code}: ${text}`) ? advice.slice(code.length + text.length + 2) : advice;
    if (rest !== "") made.append(element("span", { class: "advice" }, visible(rest.replace(/^; /, ""))));
    return made;
  }

  content(event) {
    const text = this.recording.texts[event];
    const frame = this.recording.frames?.[event];
    const raw = textBox("raw", visible(text));
    const value = parsed(contentOf(text, frame).content);
    const asJson = value === undefined ? null : textBox("json", visible(JSON.stringify(value, null, 2)));
    if (!frame) return asJson === null ? [raw] : [raw, folded("the data as JSON", asJson)];
    const title = element("p", { class: "frame" }, `frame ${visible(frame[0])}`);
    return [title, asJson ?? textBox("json", visible(frame[1])), folded("the bytes of the frame", raw)];
  }

  /** Returns where an event is, and the pieces in which it came. */
  place(event) {
    const { offsets, pieces } = this.recording;
    const [start, end] = [offsets[event], offsets[event + 1]];
    const place = `event ${event + 1}, bytes ${start} to ${end}`;
    if (pieces.length === 0) return place;
    let first = 0;
    let high = pieces.length;
    while (first < high) {
      const middle = (first + high) >> 1;
      if (pieces[middle][0] <= start) first = middle + 1;
      else high = middle;
    }
    let last = first;
    while (last < pieces.length - 1 && pieces[last][0] < end) last++;
    const came = last > first ? `in ${last - first + 1} pieces from ${inSeconds(pieces[first][1])}` : "whole";
    return `${place}, ${came} at ${inSeconds(this.track.seconds[event])}`;
  }
}

function textBox(kind, text) {
  const box = element("div", { class: `${kind} text` });
  new GrowingText(box).append(text);
  return box;
}

function folded(title, content) {
  return element("details", {}, element("summary", {}, title), content);
}
