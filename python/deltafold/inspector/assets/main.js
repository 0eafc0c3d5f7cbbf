// The page: its data, its controls and its keys.

import { Player, Track } from "./player.js";
import { RecordingView } from "./recording.js";
import { Timeline } from "./timeline.js";
import { element, inSeconds, visible } from "./text.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 20];
const KEYS = [
  ["Space", "play or pause"],
  ["← →", "previous or next event"],
  ["↑ ↓, Page, Home, End", "move in the list that has the focus"],
  ["[ ]", "slower or faster"],
  ["n p", "next or previous problem"],
  ["d", "first difference of two recordings"],
  ["1 2 3 4", "events, deltas, message, chosen event"],
  ["?", "this list"],
];

const inspected = JSON.parse(document.getElementById("data").textContent);
const tracks = inspected.recordings.map((recording) => new Track(recording));
const difference = inspected.difference;
const differs = difference === null ? [] : [difference.left_event, difference.right_event];
const player = new Player(tracks, () => update());
const views = tracks.map((track, index) => new RecordingView(track, player, index, differs[index]));
const timeline = new Timeline(player);

const play = button("Play", () => player.toggle());
const clock = element("output", { class: "clock", "aria-live": "off" });
const speed = element("select", { "aria-label": "speed" });
for (const factor of SPEEDS) {
  speed.append(element("option", { value: factor, selected: factor === 1 }, `${factor}×`));
}
speed.addEventListener("change", () => player.setSpeed(Number(speed.value)));
const help = helpDialog();

/** The view whose lists the keys move in. */
function current() {
  return views.find((view) => view.element.contains(document.activeElement)) ?? views[0];
}

function button(text, act, label = text) {
  const made = element("button", { type: "button", "aria-label": label }, text);
  made.addEventListener("click", act);
  return made;
}

function helpDialog() {
  const list = element("dl", { class: "keys" });
  for (const [keys, act] of KEYS) {
    list.append(element("dt", {}, keys), element("dd", {}, act));
  }
  const dialog = element("dialog", { "aria-label": "keys" }, element("h2", {}, "Keys"), list);
  dialog.append(button("Close", () => dialog.close()));
  return dialog;
}

function step(by) {
  const view = current();
  player.pause();
  player.seekEvent(view.track, view.track.shown + by);
}

/** Goes to the next problem of the current recording, or to the one before. */
function problem(by) {
  const view = current();
  const events = view.recording.notes.map(([event]) => event);
  if (by < 0) events.reverse();
  const next = events.find((event) => (event - view.track.shown) * by > 0);
  if (next !== undefined) view.go(next);
}

function firstDifference() {
  if (difference === null) return;
  player.pause();
  player.seekEvent(tracks[0], difference.left_event);
  if (tracks.length > 1) tracks[1].shown = difference.right_event;
  update();
}

function changeSpeed(by) {
  const index = Math.min(SPEEDS.length - 1, Math.max(0, speed.selectedIndex + by));
  speed.selectedIndex = index;
  player.setSpeed(SPEEDS[index]);
}

function focus(number) {
  const view = current();
  const boxes = [view.events.box, view.deltas.box, view.message.box, view.detail];
  boxes[number - 1].focus();
}

function key(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
  const inControl = event.target.closest?.("button, select, summary, input");
  if (event.key === " " && inControl && inControl !== timeline.slider) return;
  if (event.key.startsWith("Arrow") && inControl?.matches("select, input")) return;
  const acts = {
    " ": () => player.toggle(),
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    "[": () => changeSpeed(-1),
    "]": () => changeSpeed(1),
    n: () => problem(1),
    p: () => problem(-1),
    d: firstDifference,
    1: () => focus(1),
    2: () => focus(2),
    3: () => focus(3),
    4: () => focus(4),
    "?": () => help.showModal(),
  };
  const act = acts[event.key];
  if (act === undefined) return;
  event.preventDefault();
  act();
}

function update() {
  play.textContent = player.playing ? "Pause" : "Play";
  play.setAttribute("aria-label", play.textContent);
  clock.textContent = tracks.some((track) => track.timed)
    ? `${inSeconds(player.seconds)} of ${inSeconds(player.duration)}`
    : `event ${tracks[0].shown + 1} of ${tracks[0].count}`;
  timeline.update();
  for (const view of views) view.update();
}

function differenceLine() {
  if (tracks.length < 2) return "";
  if (difference === null) return element("p", { class: "difference" }, "The recordings say the same.");
  const line = element("p", { class: "difference" });
  line.append(button("First difference", firstDifference), " ");
  line.append(element("code", {}, visible(difference.left)), " and ");
  line.append(element("code", {}, visible(difference.right)));
  return line;
}

const controls = element(
  "div",
  { class: "controls", role: "toolbar", "aria-label": "playing" },
  play,
  button("‹", () => step(-1), "previous event"),
  button("›", () => step(1), "next event"),
  speed,
  clock,
  button("Keys", () => help.showModal()),
);
const head = element("header", { class: "top" }, element("h1", {}, "deltafold inspect"), controls);
head.append(timeline.box, differenceLine());
const page = document.getElementById("page");
page.append(head, element("div", { class: `recordings of-${views.length}` }, ...views.map((view) => view.element)), help);
document.addEventListener("keydown", key);
update();
// Ready when the first frame is on the screen.
requestAnimationFrame(() => setTimeout(() => (page.dataset.ready = performance.now())));
