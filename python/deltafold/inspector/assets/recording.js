// One recording on the page: its events, its deltas, its message, and what one event holds.
//
// In: a track and the player.  Out: an element.

import { ChosenEvent, endOf } from "./chosen.js";
import { copyButton } from "./copying.js";
import { Finding } from "./finding.js";
import { EventLines } from "./lines.js";
import { MessageView } from "./parts.js";
import { kindOf, longestPauses, markOf, nextProblem, pauseBefore, titleOf, wordOf } from "./problems.js";
import { Rows } from "./rows.js";
import { beginning, counted, element, highlighted, inSeconds, visible } from "./text.js";

const ROW_CHARACTERS = 200;
const PROBLEMS_SHOWN = 6;

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
    this.lines = new EventLines(this.recording);
    this.events = new Rows(
      label("events"),
      track.count,
      (row, index) => this.fillEvent(row, index),
      (index) => this.go(index),
    );
    this.finding = new Finding(
      track,
      label,
      (events) => {
        this.events.show(events);
        player.changed();
      },
      (by) => this.events.move(by),
    );
    this.deltas = new Rows(
      label("deltas"),
      this.recording.deltas.length,
      (row, index) => this.fillDelta(row, index),
      (index) => this.go(this.recording.deltas[index][0]),
    );
    this.message = new MessageView(this.recording, label("message"));
    this.chosen = new ChosenEvent(track, label("chosen event"), (event) => this.deltasOf(event));
    this.element = element(
      "article",
      { class: "recording", "aria-labelledby": `name${number}` },
      this.head(number),
      pane("events", "Events", counted(track.count - 1, "event"), this.finding.box, this.events.box),
      pane("deltas", "Deltas", counted(this.recording.deltas.length, "delta"), this.deltas.box),
      pane("grown", "Message", copyButton("message", () => this.message.toJson()), this.message.box),
      pane("chosen", "Chosen event", "", this.chosen.box),
    );
  }

  go(event) {
    this.player.pause();
    this.player.seekEvent(this.track, event);
  }

  /** Goes to the next problem, or to the one before; after the last comes the first. */
  goToProblem(by) {
    const event = nextProblem(this.recording, this.track.shown, by);
    if (event !== undefined) this.go(event);
  }

  /** Returns the element with what is known of the whole recording. */
  head(number) {
    const recording = this.recording;
    const name = element("h2", { id: `name${number}` }, visible(recording.name));
    const head = element("header", {}, element("div", { class: "named" }, name, this.verdict()));
    const bytes = recording.offsets[recording.offsets.length - 1];
    const facts = [recording.dialect, `HTTP ${recording.status}`, counted(bytes, "byte")];
    facts.push(recording.timed ? inSeconds(this.track.duration) : "no times recorded");
    if (recording.ending !== "end") facts.push(`ended by ${recording.ending}`);
    facts.push(...callFacts(recording.answer), `deltafold ${recording.version}`);
    head.append(element("p", { class: "about" }, facts.join(" · ")), this.jumps());
    return head;
  }

  /** Returns how the answer ended, as its fold says. */
  verdict() {
    const answer = this.recording.answer;
    if (!answer) return "";
    if (answer.error) return element("span", { class: "verdict bad" }, markOf("error", answer.error.code));
    const reason = answer.finish_reason ?? "no finish reason";
    if (answer.forbids_calls) return element("span", { class: "verdict bad" }, markOf("refusal", reason));
    return element("span", { class: "verdict" }, markOf("well", reason));
  }

  /** Returns buttons that lead to the problems and to the longest pauses. */
  jumps() {
    const jumps = element("div", { class: "jumps" });
    const { notes } = this.recording;
    for (const note of notes.slice(0, PROBLEMS_SHOWN)) {
      const [event, level, , text] = note;
      jumps.append(this.jump(level, markOf(kindOf(note), `${titleOf(note)}: ${beginning(text, 80)}`), event));
    }
    const more = notes.length - PROBLEMS_SHOWN;
    if (more > 0) jumps.append(element("span", {}, `and ${counted(more, "more problem")}`));
    for (const { event, seconds } of longestPauses(this.track)) {
      jumps.append(this.jump("pause", markOf("pause", `pause of ${inSeconds(seconds)}`), event));
    }
    return jumps;
  }

  jump(kind, mark, event) {
    const button = element("button", { type: "button", class: kind }, mark);
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
    this.chosen.show(shown, this.notes.get(shown) ?? []);
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

  /** Returns the range of the deltas of an event. */
  deltasOf(event) {
    return [this.deltasUntil(event - 1), this.deltasUntil(event)];
  }

  fillEvent(row, index) {
    const isEnd = index === this.track.count - 1;
    row.append(element("span", { class: "number" }, isEnd ? "end" : String(index + 1)));
    const pause = pauseBefore(this.track, index);
    if (this.track.timed) {
      const since = this.track.seconds[index] - (index === 0 ? 0 : this.track.seconds[index - 1]);
      const time = `+${since.toFixed(3)}`;
      const shown = pause > 0 ? markOf("pause", time) : time;
      row.append(element("span", { class: pause > 0 ? "time long" : "time" }, shown));
    }
    row.append(element("span", { class: "offset" }, `@${this.recording.offsets[index]}`), this.marks(index));
    if (isEnd) row.append(element("code", {}, endOf(this.recording)));
    else row.append(...this.line(index));
    row.classList.toggle("later", index > this.track.shown);
  }

  /** Returns the elements of an event's line: its type, and what it brings. */
  line(index) {
    const { type, members } = this.lines.line(index, this.recording.deltas.slice(...this.deltasOf(index)));
    const sought = this.finding.query.toLowerCase();
    const code = element("code");
    for (const [member, value, isBrought] of members) {
      if (member !== "") code.append(element("span", { class: "member" }, visible(member)), " ");
      const nodes = highlighted(beginning(value, ROW_CHARACTERS), sought);
      code.append(...(isBrought ? nodes : [element("span", { class: "member" }, ...nodes)]), "  ");
    }
    // Of a long type the end is shown.
    return type === "" ? [code] : [element("span", { class: "type" }, element("bdi", {}, visible(type))), code];
  }

  marks(event) {
    const marks = element("span", { class: "marks" });
    for (const note of this.notes.get(event) ?? []) {
      const kind = kindOf(note);
      marks.append(markOf(kind, kind === "error" ? visible(note[2]) : wordOf(kind)));
    }
    if (event === this.different) marks.append(element("span", { class: "mark differs" }, "≠ differs"));
    return marks;
  }

  fillDelta(row, index) {
    const [event, kind, payload] = this.recording.deltas[index];
    row.append(
      element("span", { class: "number" }, String(index + 1)),
      element("span", { class: `kind ${kind.split("_")[0]}` }, kind),
      element("code", {}, beginning(summary(kind, payload), ROW_CHARACTERS)),
    );
    row.classList.toggle("later", event > this.track.shown);
    row.classList.toggle("current", event === this.track.shown);
  }
}

function pane(name, title, about, ...content) {
  const head = element("div", { class: "pane-head" }, element("h3", {}, title));
  head.append(typeof about === "string" ? element("small", {}, about) : about);
  return element("section", { class: `pane ${name}` }, head, ...content);
}

/** Returns what the fold of the answer counts. */
function callFacts(answer) {
  if (!answer || answer.calls.length === 0) return [];
  const runnable = answer.calls.filter((call) => call.runnable).length;
  return [`${counted(answer.calls.length, "call")}, ${runnable} runnable`];
}

function summary(kind, payload) {
  switch (kind) {
    case "start":
      return `${payload.modelId} ${payload.requestId}`.trim();
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
