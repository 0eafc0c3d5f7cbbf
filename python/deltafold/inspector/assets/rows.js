// List of many rows, of which only those in view exist.
//
// In: the number of rows, those to show, and a function that fills one.  Out: a listbox that the keyboard
// moves in.
//
// Law: drawing costs the rows in view, whatever their number.

import { element } from "./text.js";

const ROW_PIXELS = 24;
const ROWS_AROUND = 8;

export class Rows {
  /**
   * @param {string} label the name of the list for assistive technology
   * @param {number} count the number of rows
   * @param {(row: HTMLElement, index: number) => void} fill fills an empty row
   * @param {(index: number) => void} choose is called when the user chooses a row
   */
  constructor(label, count, fill, choose) {
    this.items = Array.from({ length: count }, (_, index) => index);
    this.all = this.items;
    this.fill = fill;
    this.choose = choose;
    this.active = -1;
    this.prefix = `row${Rows.made++}-`;
    this.inner = element("div", { class: "rows-inner", role: "none" });
    // A listbox needs an option.
    const nothing = { class: "rows-empty", role: "option", "aria-disabled": "true", "aria-selected": "false" };
    this.empty = element("div", { ...nothing, hidden: true }, "No event matches.");
    this.box = element(
      "div",
      { class: "rows", role: "listbox", tabindex: "0", "aria-label": label },
      this.inner,
      this.empty,
    );
    this.inner.style.height = `${count * ROW_PIXELS}px`;
    this.box.addEventListener("scroll", () => this.drawSoon());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.inner.addEventListener("mousedown", (event) => this.click(event));
    new ResizeObserver(() => this.drawSoon()).observe(this.box);
  }

  /** Shows some of the rows, or all of them for null. */
  show(items) {
    this.items = items ?? this.all;
    this.inner.style.height = `${this.items.length * ROW_PIXELS}px`;
    this.empty.hidden = this.items.length > 0;
    this.select(this.active);
  }

  /** Returns the place of the last row that is shown at or before an index, -1 before the first. */
  placeOf(index) {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.items[middle] <= index) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Marks a row as the current one, and brings it into view: after a leap to the middle. */
  select(index) {
    this.active = index;
    const place = this.placeOf(index);
    const top = place * ROW_PIXELS;
    const height = this.box.clientHeight;
    if (place >= 0 && height > 0) {
      const above = this.box.scrollTop - top;
      const below = top + ROW_PIXELS - this.box.scrollTop - height;
      if (Math.max(above, below) > 2 * ROW_PIXELS) this.box.scrollTop = top - height / 2;
      else if (above > 0) this.box.scrollTop = top;
      else if (below > 0) this.box.scrollTop = top + ROW_PIXELS - height;
    }
    this.drawSoon();
  }

  drawSoon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_PIXELS) - ROWS_AROUND);
    const inView = Math.ceil(this.box.clientHeight / ROW_PIXELS) + 2 * ROWS_AROUND;
    const rows = [];
    for (let place = first; place < Math.min(this.items.length, first + inView); place++) {
      const index = this.items[place];
      const row = element("div", {
        class: "row",
        role: "option",
        id: this.prefix + index,
        "data-index": index,
        "aria-selected": index === this.active ? "true" : "false",
        "aria-setsize": this.items.length,
        "aria-posinset": place + 1,
      });
      row.style.top = `${place * ROW_PIXELS}px`;
      this.fill(row, index);
      rows.push(row);
    }
    this.inner.replaceChildren(...rows);
    const place = this.placeOf(this.active);
    const drawn = place >= first && place < first + rows.length && this.items[place] === this.active;
    if (drawn) this.box.setAttribute("aria-activedescendant", this.prefix + this.active);
    else this.box.removeAttribute("aria-activedescendant");
  }

  click(event) {
    const row = event.target.closest(".row");
    if (row !== null) this.choose(Number(row.dataset.index));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW_PIXELS) - 1);
    const steps = {
      ArrowUp: -1,
      ArrowDown: 1,
      PageUp: -page,
      PageDown: page,
      Home: -this.items.length,
      End: this.items.length,
    };
    const step = steps[event.key];
    if (step === undefined || this.items.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.move(step);
  }

  /** Chooses the row that is some rows behind the current one, or before it. */
  move(by) {
    if (this.items.length === 0) return;
    const place = this.placeOf(this.active);
    // Above a row that is not shown, the row before it is one step away.
    const from = by < 0 && this.items[place] !== this.active ? place + 1 : place;
    this.choose(this.items[Math.min(this.items.length - 1, Math.max(0, from + by))]);
  }
}

Rows.made = 0;
