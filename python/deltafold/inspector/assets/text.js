// Text of a recording as DOM nodes: elements, visible control characters, blocks of a long text.
//
// In: hostile text.  Out: nodes whose content is that text.
//
// Laws: text reaches the page as text nodes only.  A long text is cut into blocks that the browser
// lays out when they come into view, so that its length does not matter.

const BLOCK_CHARACTERS = 4096;

// C0 controls without tab and line ends, DEL, C1, and controls of the direction of text.
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Returns an element with attributes and children; children that are strings become text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Returns a text whose invisible characters are escapes. */
export function visible(text) {
  return text.replace(INVISIBLE, (letter) => {
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** Returns the beginning of a text on one line. */
export function beginning(text, characters) {
  const cut = text.length > characters ? `${text.slice(0, characters)}…` : text;
  return visible(cut.replace(/[\r\n]+/g, " ⏎ "));
}

/** Returns a text as nodes, in which each place of another text is marked; letters count in any case. */
export function highlighted(text, sought) {
  const lower = text.toLowerCase();
  // Few letters are longer in lower case, and then places would be wrong.
  if (sought === "" || lower.length !== text.length) return [text];
  const nodes = [];
  let from = 0;
  for (let at = lower.indexOf(sought); at >= 0; at = lower.indexOf(sought, from)) {
    nodes.push(text.slice(from, at), element("mark", {}, text.slice(at, at + sought.length)));
    from = at + sought.length;
  }
  nodes.push(text.slice(from));
  return nodes;
}

/** Returns a number of bytes or characters for people. */
export function counted(count, unit) {
  return `${count.toLocaleString("en")} ${unit}${count === 1 ? "" : "s"}`;
}

/** Returns seconds for people, with milliseconds. */
export function inSeconds(seconds) {
  return `${seconds.toFixed(3)} s`;
}

/** A text that grows at its end, in blocks. */
export class GrowingText {
  constructor(box) {
    this.box = box;
    this.length = 0;
    this.last = null;
  }

  append(text) {
    this.length += text.length;
    let at = 0;
    while (at < text.length) {
      if (this.last === null || this.last.length >= BLOCK_CHARACTERS) {
        this.last = document.createTextNode("");
        this.box.append(element("div", { class: "block" }, this.last));
      }
      const end = blockEnd(text, at, at + BLOCK_CHARACTERS - this.last.length);
      this.last.appendData(text.slice(at, end));
      at = end;
      // The next piece of the same text begins a block of its own.
      if (at < text.length) this.last = null;
    }
  }
}

/** Returns the end of a block: after a line, else after a word, and never inside of a character. */
function blockEnd(text, start, limit) {
  if (limit >= text.length) return text.length;
  const room = text.slice(start, limit);
  const line = room.lastIndexOf("\n") + 1;
  if (line > 0) return start + line;
  const word = room.lastIndexOf(" ") + 1;
  if (word > 0) return start + word;
  const code = text.charCodeAt(limit - 1);
  const end = code >= 0xd800 && code < 0xdc00 ? limit + 1 : limit;
  return Math.max(end, start + 1);
}
