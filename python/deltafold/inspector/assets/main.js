// The page: its data, its controls and its keys.

import { copyStatus, copyText } from "./copying.js";
import { readLink, writeLink } from "./link.js";
import { Player, Track } from "./player.js";
import { problemEvents } from "./problems.js";
import { RecordingView } from "./recording.js";
import { Timeline } from "./timeline.js";
import { element, inSeconds, visible } from "./text.js";

const LINK_MILLISECONDS = 300;
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 20];
const KEYS = [
  ["Space", "play or pause"],
  ["← →", "previous or next event"],
  ["↑ ↓, Page, Home, End", "move in the list that has the focus"],
  ["[ ]", "slower or faster"],
  ["n p", "next or previous problem, round and round"],
  ["/", "search events; Enter goes to the next one, Escape ends"],
  ["c", "copy the chosen event"],
  ["m", "copy the message"],
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

function firstDifference() {
  if (difference === null) return;
  goTo([difference.left_event, difference.right_event]);
}

/** Goes to an event of each recording. */
function goTo(events) {
  if (player.playing) player.pause();
  player.seekEvent(tracks[0], events[0]);
  events.slice(1).forEach((event, index) => (tracks[index + 1].shown = event));
  update();
}

/** Goes where the fragment of an address says; returns whether it says so. */
function followLink(address) {
  const positions = readLink(new URL(address).hash, tracks);
  positions.forEach(({ query, group }, index) => views[index].finding.set(query, group));
  const events = positions.map(({ event }) => event);
  if (events.includes(null)) return false;
  goTo(events);
  return true;
}

/** Goes to the first difference, else to the first problem, else to the end. */
function open() {
  if (difference !== null) firstDifference();
  else goTo(tracks.map((track) => problemEvents(track.recording)[0] ?? track.count - 1));
}

/** Keeps the position in the address; browsers bound how often that is done. */
function keepLink() {
  clearTimeout(keepLink.timer);
  keepLink.timer = setTimeout(() => {
    if (player.playing) return;
    const positions = views.map(({ track, finding }) => {
      return { event: track.shown, count: track.count, find: finding.query, show: finding.group };
    });
    history.replaceState(null, "", writeLink(positions));
  }, LINK_MILLISECONDS);
}

function changeSpeed(by) {
  const index = Math.min(SPEEDS.length - 1, Math.max(0, speed.selectedIndex + by));
  speed.selectedIndex = index;
  player.setSpeed(SPEEDS[index]);
}

function focus(number) {
  const view = current();
  const boxes = [view.events.box, view.deltas.box, view.message.box, view.chosen.box];
  boxes[number - 1].focus();
}

function key(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
  const inControl = event.target.closest?.("button, select, summary, input");
  // Letters belong to the search, and to a list of choices.
  if (inControl?.matches("input[type=search], select")) return;
  if (event.key === " " && inControl && inControl !== timeline.slider) return;
  if (event.key.startsWith("Arrow") && inControl?.matches("input")) return;
  const acts = {
    " ": () => player.toggle(),
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    "[": () => changeSpeed(-1),
    "]": () => changeSpeed(1),
    n: () => current().goToProblem(1),
    p: () => current().goToProblem(-1),
    "/": () => current().finding.input.focus(),
    c: () => copyText("event", current().chosen.textOf(current().track.shown)),
    m: () => copyText("message", current().message.toJson()),
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
    ? `${player.seconds.toFixed(3)} of ${inSeconds(player.duration)}`
    : `event ${tracks[0].shown + 1} of ${tracks[0].count}`;
  timeline.update();
  for (const view of views) view.update();
  keepLink();
}

/** Returns the buttons that go from problem to problem, none without a problem. */
function problemButtons() {
  if (!tracks.some((track) => track.recording.notes.length > 0)) return [];
  const go = (by) => () => current().goToProblem(by);
  return [button("‹ Problem", go(-1), "previous problem"), button("Problem ›", go(1), "next problem")];
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
  ...problemButtons(),
  speed,
  clock,
  button("Keys", () => help.showModal()),
);
const head = element("header", { class: "top" }, element("h1", {}, "deltafold inspect"), controls);
head.append(timeline.box, differenceLine(), copyStatus());
const page = document.getElementById("page");
page.append(head, element("div", { class: `recordings of-${views.length}` }, ...views.map((view) => view.element)), help);
document.addEventListener("keydown", key);
addEventListener("hashchange", (event) => followLink(event.newURL));
if (!followLink(location.href)) open();
// Ready when the first frame is on the screen.
requestAnimationFrame(() => setTimeout(() => (page.dataset.ready = performance.now())));
