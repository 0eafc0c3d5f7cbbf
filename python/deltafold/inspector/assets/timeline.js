// Time line: a slider over a picture of the events, the pauses and the problems.
//
// In: tracks and a player.  Out: an element.
//
// Laws: the slider and the buttons of the pauses say in words what the picture shows.  The picture
// is drawn once for each size and colour scheme; events that share a pixel are one mark.

import { kindOf, pauseBefore, shapeOf } from "./problems.js";
import { element, inSeconds } from "./text.js";

const LANE_PIXELS = 34;
const MARK_PIXELS = 14;
const STRIPE_PIXELS = 6;
const COLOURS = { error: "bad", refusal: "bad", cut: "bad", call: "warn", warning: "warn" };

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
    for (let index = 0; index < track.count; index++) {
      if (pauseBefore(track, index) === 0) continue;
      const left = place(index === 0 ? 0 : track.seconds[index - 1]);
      drawPause(pen, left, top + MARK_PIXELS + 6, Math.max(1, place(track.seconds[index]) - left), colour);
    }
    const kinds = new Array(track.count);
    for (const [event, kind] of track.recording.deltas) kinds[event] ??= kind;
    let drawn = -1;
    for (let index = 0; index < track.count; index++) {
      const left = Math.round(place(track.seconds[index]));
      if (left === drawn) continue;
      drawn = left;
      pen.fillStyle = colour(`kind-${(kinds[index] ?? "none").split("_")[0]}`) || colour("kind-none");
      pen.fillRect(left, top + MARK_PIXELS + 2, 2, LANE_PIXELS - MARK_PIXELS - 4);
    }
    this.drawMarks(pen, track, top, width, place, colour);
  }

  /** Draws the shapes of the problems above their events; those that would overlap others are left out. */
  drawMarks(pen, track, top, width, place, colour) {
    pen.font = `bold ${MARK_PIXELS - 1}px ${colour("mono")}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const kinds = new Map();
    for (const note of track.recording.notes) {
      kinds.set(note[0], (kinds.get(note[0]) ?? new Set()).add(kindOf(note)));
    }
    let free = 0;
    for (const [event, shapes] of kinds) {
      const most = width - shapes.size * MARK_PIXELS;
      let left = Math.max(0, Math.min(most, place(track.seconds[event]) - (shapes.size * MARK_PIXELS) / 2));
      if (left < free) continue;
      for (const kind of shapes) {
        pen.fillStyle = colour(COLOURS[kind]);
        pen.fillText(shapeOf(kind), left + MARK_PIXELS / 2, top + MARK_PIXELS / 2 + 1);
        left += MARK_PIXELS;
      }
      free = left;
    }
  }
}

/** Draws a pause as a band with stripes. */
function drawPause(pen, left, top, width, colour) {
  const height = LANE_PIXELS - MARK_PIXELS - 12;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.fillStyle = colour("pause");
  pen.fillRect(left, top, width, height);
  pen.strokeStyle = colour("panel");
  pen.beginPath();
  for (let at = left - height; at < left + width; at += STRIPE_PIXELS) {
    pen.moveTo(at, top + height);
    pen.lineTo(at + height, top);
  }
  pen.stroke();
  pen.restore();
}
