// One recording on the page: its events, its deltas, its message, and what one event holds.
//
// In: a track and the player.  Out: an element.

import { GrowingText, beginning, counted, element, inSeconds, visible } from "./text.js";
import { MessageView } from "./parts.js";
import { Rows } from "./rows.js";
import { LONG_PAUSE_SECONDS, longestPauses } from "./timeline.js";

const PREVIEW_CHARACTERS = 200;
const DELTAS_IN_DETAIL = 50;
const COMPARED_CHARACTERS = 4000;
const SHORTEST_SKIPPED = 20;

/** An event of server-sent events that has at most a name before its data. */
const EVENT = /^(?:event: ?([^\r\n]*)\r?\n)?data: ?([^]*)$/;

export class RecordingView {
  constructor(track, player, number, different) {
    this.track = track;
    this.player = player;
    this.recording = track.recording;
    this.different = different;
    // Lists of two recordings need two names.
    const label = (what) => (player.tracks.length > 1 ? `${what} ${number + 1}` : what);
    this.notes = new Map();
    for (const note of this.recording.notes) {
      this.notes.set(note[0], [...(this.notes.get(note[0]) ?? []), note]);
    }
    this.events = new Rows(
      label("events"),
      track.count,
      (row, index) => this.fillEvent(row, index),
      (index) => this.go(index),
    );
    this.deltas = new Rows(
      label("deltas"),
      this.recording.deltas.length,
      (row, index) => this.fillDelta(row, index),
      (index) => this.go(this.recording.deltas[index][0]),
    );
    this.message = new MessageView(this.recording, label("message"));
    this.detail = element("div", {
      class: "detail",
      tabindex: "0",
      role: "region",
      "aria-label": label("chosen event"),
    });
    this.element = element(
      "article",
      { class: "recording", "aria-labelledby": `name${number}` },
      this.head(number),
      pane("Events", counted(track.count - 1, "event"), this.events.box),
      pane("Deltas", counted(this.recording.deltas.length, "delta"), this.deltas.box),
      pane("Message", "", this.message.box),
      pane("Chosen event", "", this.detail),
    );
    this.element.querySelectorAll(".pane").forEach((made, index) => {
      made.classList.add(["events", "deltas", "grown", "chosen"][index]);
    });
  }

  go(event) {
    this.player.pause();
    this.player.seekEvent(this.track, event);
  }

  head(number) {
    const recording = this.recording;
    const head = element("header", {}, element("h2", { id: `name${number}` }, visible(recording.name)));
    const bytes = recording.offsets[recording.offsets.length - 1];
    const facts = [recording.dialect, `HTTP ${recording.status}`, counted(bytes, "byte")];
    facts.push(recording.timed ? inSeconds(this.track.duration) : "no times recorded");
    if (recording.ending !== "end") facts.push(`ended by ${recording.ending}`);
    facts.push(`deltafold ${recording.version}`);
    head.append(element("p", { class: "about" }, facts.join(" · ")));
    const jumps = element("div", { class: "jumps" });
    for (const { index, seconds } of longestPauses(this.track)) {
      jumps.append(this.jump("pause", `pause of ${inSeconds(seconds)}`, index));
    }
    for (const [event, level, code, text] of recording.notes.slice(0, 8)) {
      jumps.append(this.jump(level, `${level} ${code}: ${beginning(text, 80)}`, event));
    }
    const more = recording.notes.length - 8;
    if (more > 0) jumps.append(element("span", {}, `and ${counted(more, "more problem")}`));
    head.append(jumps);
    return head;
  }

  jump(kind, text, event) {
    const button = element("button", { type: "button", class: kind }, text);
    button.addEventListener("click", () => this.go(event));
    return button;
  }

  update() {
    const shown = this.track.shown;
    if (shown === this.drawn) return;
    this.drawn = shown;
    const count = this.deltasUntil(shown);
    this.element.dataset.event = shown;
    this.events.select(shown);
    this.deltas.select(count - 1);
    this.message.show(count);
    this.drawDetail(shown);
  }

  /** Returns the number of deltas of the events up to one. */
  deltasUntil(event) {
    let [low, high] = [0, this.recording.deltas.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.recording.deltas[middle][0] <= event) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  fillEvent(row, index) {
    const { texts, offsets } = this.recording;
    const isEnd = index === this.track.count - 1;
    row.append(element("span", { class: "number" }, isEnd ? "end" : String(index + 1)));
    if (this.track.timed) {
      const since = this.track.seconds[index] - (index === 0 ? 0 : this.track.seconds[index - 1]);
      const long = since >= LONG_PAUSE_SECONDS;
      row.append(element("span", { class: long ? "time long" : "time" }, `+${since.toFixed(3)}`));
    }
    row.append(element("span", { class: "offset" }, `@${offsets[index]}`));
    row.append(this.marks(index));
    const told = isEnd ? endOf(this.recording) : preview(texts[index], texts[index - 1] ?? "");
    row.append(element("code", {}, told));
    row.classList.toggle("later", index > this.track.shown);
  }

  marks(event) {
    const marks = element("span", { class: "marks" });
    for (const [, level, code] of this.notes.get(event) ?? []) {
      marks.append(element("span", { class: level }, code));
    }
    if (event === this.different) marks.append(element("span", { class: "differs" }, "differs"));
    return marks;
  }

  fillDelta(row, index) {
    const [event, kind, payload] = this.recording.deltas[index];
    row.append(
      element("span", { class: "number" }, String(index + 1)),
      element("span", { class: `kind ${kind.split("_")[0]}` }, kind),
      element("code", {}, beginning(summary(kind, payload), PREVIEW_CHARACTERS)),
    );
    row.classList.toggle("later", event > this.track.shown);
    row.classList.toggle("current", event === this.track.shown);
  }

  drawDetail(event) {
    if (event < 0) {
      this.detail.replaceChildren(element("p", {}, "before the first event"));
      return;
    }
    const { texts, deltas } = this.recording;
    const isEnd = event === this.track.count - 1;
    const title = isEnd ? endOf(this.recording) : `event ${event + 1}, ${this.place(event)}`;
    const made = [element("p", { class: "place" }, title)];
    for (const [, level, code, text, offset] of this.notes.get(event) ?? []) {
      const place = offset === null ? "" : ` (at byte ${offset})`;
      made.push(element("p", { class: `note ${level}` }, `${level} ${code}: ${visible(text)}${place}`));
    }
    if (!isEnd) {
      const raw = element("div", { class: "raw text" });
      new GrowingText(raw).append(visible(texts[event]));
      made.push(raw);
    }
    const [from, to] = [this.deltasUntil(event - 1), this.deltasUntil(event)];
    for (const [, kind, payload] of deltas.slice(from, Math.min(to, from + DELTAS_IN_DETAIL))) {
      const json = element("div", { class: "json text" });
      new GrowingText(json).append(visible(JSON.stringify(payload, null, 1)));
      made.push(element("p", { class: "delta" }, `delta ${kind}`), json);
    }
    if (to - from > DELTAS_IN_DETAIL) {
      made.push(element("p", {}, `and ${counted(to - from - DELTAS_IN_DETAIL, "more delta")}`));
    }
    this.detail.replaceChildren(...made);
    this.detail.scrollTop = 0;
  }

  /** Returns where an event is, and the pieces in which it came. */
  place(event) {
    const { offsets, pieces } = this.recording;
    const [start, end] = [offsets[event], offsets[event + 1]];
    const place = `bytes ${start} to ${end}`;
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

function pane(title, about, content) {
  const head = element("h3", {}, title, " ", element("small", {}, about));
  return element("section", { class: "pane" }, head, content);
}

/** Returns an event on one line: what differs from the event before. */
function preview(text, before) {
  const [, name = "", data] = EVENT.exec(text) ?? [text, "", text];
  const [, nameBefore = "", previous] = EVENT.exec(before) ?? [before, "", before];
  const most = Math.min(data.length, previous.length, COMPARED_CHARACTERS);
  let same = 0;
  while (same < most && data[same] === previous[same]) same++;
  if (same === most && same < COMPARED_CHARACTERS) same = 0;
  // The member that differs begins after a brace or a comma.
  const member = Math.max(data.lastIndexOf("{", same - 1), data.lastIndexOf(",", same - 1)) + 1;
  const skipped = member > SHORTEST_SKIPPED ? member : 0;
  const shown = data.slice(skipped, skipped + 2 * PREVIEW_CHARACTERS).trim();
  const named = name !== nameBefore ? `${name} ` : "";
  return beginning(named + (skipped > 0 ? "…" : "") + shown, PREVIEW_CHARACTERS);
}

function endOf(recording) {
  const told = {
    end: "end of the body",
    cut: "the connection was closed here",
    reset: "the connection was reset here",
    stall: "nothing more came",
  };
  return told[recording.ending] ?? recording.ending;
}

function summary(kind, payload) {
  switch (kind) {
    case "start":
      return `${payload.modelId} ${payload.requestId}`;
    case "text":
    case "thinking":
      return payload.textDelta;
    case "tool_call_start":
      return `${payload.toolName} ${payload.toolCallId}`;
    case "tool_call_args":
      return payload.argsTextDelta;
    case "tool_call_end":
      return payload.toolCallId + (payload.incomplete ? " incomplete" : "");
    case "usage":
      return `${payload.inputTokens ?? "?"} in, ${payload.outputTokens ?? "?"} out`;
    case "done":
      return payload.finishReason;
    case "error":
      return `${payload.errorCode}: ${payload.message ?? ""}`;
    case "part":
      return String(payload.part?.kind);
    default:
      return payload.partIndex === undefined ? "" : `part ${payload.partIndex}`;
  }
}
