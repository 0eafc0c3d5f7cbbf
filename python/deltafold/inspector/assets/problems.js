// Problems and pauses of a recording, and the mark of each kind.
//
// In: the notes of a recording, the times of its events.  Out: their events, marks as elements.
//
// Law: each kind has a shape and a word of its own, so that no colour is needed to tell it.

import { element, visible } from "./text.js";

/** A silence of this length in seconds is a pause that the page marks. */
export const LONG_PAUSE_SECONDS = 0.25;

const LONGEST_PAUSES = 3;
// The selector behind the scissors asks for a letter, not for a picture.
const MARKS = {
  error: ["✕", "error"],
  refusal: ["⊘", "refusal"],
  cut: ["✂\ufe0e", "cut call"],
  call: ["?", "unusable call"],
  warning: ["▲", "warning"],
  pause: ["‖", "pause"],
  well: ["✓", "done"],
};

/** Returns the kind of a note: a call that was cut off is told apart from other calls. */
export function kindOf([, level, code]) {
  return level === "call" && code === "incomplete" ? "cut" : level;
}

/** Returns the shape of a kind. */
export function shapeOf(kind) {
  return MARKS[kind][0];
}

/** Returns the word of a kind. */
export function wordOf(kind) {
  return MARKS[kind][1];
}

/** Returns what a note is, in words: an error and a warning have a code. */
export function titleOf(note) {
  const kind = kindOf(note);
  return kind === "error" || kind === "warning" ? `${wordOf(kind)} ${visible(note[2])}` : wordOf(kind);
}

/** Returns the mark of a kind: its shape, and a text, which is its word unless another is given. */
export function markOf(kind, text = wordOf(kind)) {
  return element(
    "span",
    { class: `mark ${kind}` },
    element("span", { class: "shape", "aria-hidden": "true" }, shapeOf(kind)),
    ` ${text}`,
  );
}

/** Returns the pause before an event in seconds, 0 if it is too short to be marked. */
export function pauseBefore(track, event) {
  if (!track.timed) return 0;
  const seconds = track.seconds[event] - (event === 0 ? 0 : track.seconds[event - 1]);
  return seconds >= LONG_PAUSE_SECONDS ? seconds : 0;
}

/** Returns the longest pauses of a track: the event after each, and its length in seconds. */
export function longestPauses(track) {
  const found = [];
  for (let event = 0; event < track.count; event++) {
    const seconds = pauseBefore(track, event);
    if (seconds > 0) found.push({ event, seconds });
  }
  found.sort((one, other) => other.seconds - one.seconds);
  return found.slice(0, LONGEST_PAUSES);
}

/** Returns the events with a problem, in their order. */
export function problemEvents(recording) {
  return [...new Set(recording.notes.map(([event]) => event))];
}

/** Returns the event with a problem after one, or before it; the list is a ring. */
export function nextProblem(recording, event, by) {
  const events = problemEvents(recording);
  if (by < 0) events.reverse();
  return events.find((other) => (other - event) * by > 0) ?? events[0];
}
