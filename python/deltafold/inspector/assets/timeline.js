// Time line: a slider over a picture of the events, the pauses and the problems.
//
// In: tracks and a player.  Out: an element.
//
// Laws: the slider and the buttons of the pauses say in words what the picture shows.  The picture
// is drawn once for each size and colour scheme; events that share a pixel are one mark.

import { element, inSeconds } from "./text.js";

const LANE_PIXELS = 26;
/** A silence of this length is a pause that the page marks. */
export const LONG_PAUSE_SECONDS = 0.25;

const LONGEST_PAUSES = 4;

/** Returns the longest pauses of a track: the event after each, and its length in seconds. */
export function longestPauses(track) {
  const found = [];
  if (!track.timed) return found;
  for (let index = 0; index < track.count; index++) {
    const seconds = track.seconds[index] - (index === 0 ? 0 : track.seconds[index - 1]);
    if (seconds >= LONG_PAUSE_SECONDS) found.push({ index, seconds });
  }
  found.sort((one, other) => other.seconds - one.seconds);
  return found.slice(0, LONGEST_PAUSES);
}

export class Timeline {
  constructor(player) {
    this.player = player;
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.canvas.style.height = `${LANE_PIXELS * player.tracks.length}px`;
    this.slider = element("input", {
      type: "range",
      min: "0",
      max: "1000",
      step: "any",
      "aria-label": "time",
    });
    this.slider.max = String(player.duration || 1);
    this.slider.addEventListener("input", () => player.seek(Number(this.slider.value)));
    this.box = element("div", { class: "timeline" }, this.canvas, this.slider);
    new ResizeObserver(() => this.draw()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  update() {
    this.slider.value = String(this.player.seconds);
    const told = this.player.tracks.map((track) => `event ${track.shown + 1} of ${track.count}`);
    const time = this.player.tracks.some((track) => track.timed)
      ? `${inSeconds(this.player.seconds)} of ${inSeconds(this.player.duration)}, `
      : "";
    this.slider.setAttribute("aria-valuetext", time + told.join(" and "));
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(LANE_PIXELS * this.player.tracks.length * ratio);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(this.box);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.player.tracks.forEach((track, lane) => {
      this.drawLane(pen, track, lane * LANE_PIXELS, width, colour);
    });
  }

  drawLane(pen, track, top, width, colour) {
    const place = (seconds) => (this.player.duration > 0 ? (seconds / this.player.duration) * (width - 2) : 0);
    for (let index = 0; track.timed && index < track.count; index++) {
      const from = index === 0 ? 0 : track.seconds[index - 1];
      if (track.seconds[index] - from < LONG_PAUSE_SECONDS) continue;
      pen.fillStyle = colour("pause");
      const left = place(from);
      pen.fillRect(left, top + 8, Math.max(1, place(track.seconds[index]) - left), LANE_PIXELS - 16);
    }
    const kinds = new Array(track.count);
    for (const [event, kind] of track.recording.deltas) kinds[event] ??= kind;
    let drawn = -1;
    for (let index = 0; index < track.count; index++) {
      const left = Math.round(place(track.seconds[index]));
      if (left === drawn) continue;
      drawn = left;
      pen.fillStyle = colour(`kind-${(kinds[index] ?? "none").split("_")[0]}`) || colour("kind-none");
      pen.fillRect(left, top + 4, 2, LANE_PIXELS - 8);
    }
    for (const [event, level] of track.recording.notes) {
      const left = Math.min(width - 8, Math.max(5, place(track.seconds[event])));
      pen.fillStyle = colour(level === "error" ? "bad" : "warn");
      pen.beginPath();
      pen.moveTo(left + 1, top + 10);
      pen.lineTo(left - 5, top);
      pen.lineTo(left + 7, top);
      pen.fill();
    }
  }
}
