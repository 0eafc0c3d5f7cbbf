// Texts for the clipboard.
//
// In: a text.  Out: a button that copies it, and says so.

import { element } from "./text.js";

const SAID_MILLISECONDS = 1500;
const status = element("div", { class: "hidden", role: "status" });

/** Returns the element in which assistive technology hears what was copied. */
export function copyStatus() {
  return status;
}

/** Copies a text, and says what it was. */
export function copyText(what, text) {
  const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
  return copied.catch(() => copyOldWay(text)).then(() => (status.textContent = `${what} copied`));
}

/** Copies where a page has no clipboard: without HTTPS, and where the browser refuses it. */
function copyOldWay(text) {
  const box = element("textarea", { class: "hidden" });
  const focused = document.activeElement;
  document.body.append(box);
  box.value = text;
  box.select();
  document.execCommand("copy");
  box.remove();
  focused?.focus();
}

/** Returns a button that copies what a function returns. */
export function copyButton(what, makeText) {
  const button = element("button", { type: "button", class: "copy" }, `Copy ${what}`);
  button.addEventListener("click", async () => {
    await copyText(what, makeText());
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = `Copy ${what}`), SAID_MILLISECONDS);
  });
  return button;
}
