// The message while it grows: its parts, usage, cost and end.
//
// In: deltas in their order.  Out: one element for each part.
//
// Laws: going forward applies the deltas in between; going back begins again.  The texts of one step
// are joined before they reach the page.

import { ArgumentsTree } from "./tree.js";
import { GrowingText, counted, element, visible } from "./text.js";

/** One part on the page. */
class PartView {
  constructor(kind, title) {
    this.title = element("h4", {}, title);
    this.body = element("div", { class: "text" });
    this.element = element("section", { class: `grown-part ${kind}` }, this.title, this.body);
    this.text = new GrowingText(this.body);
    this.pending = [];
  }

  tag(text) {
    this.title.append(" ", element("span", { class: "tag" }, text));
  }

  flush() {
    if (this.pending.length > 0) this.text.append(this.pending.join(""));
    this.pending.length = 0;
  }
}

/** A tool call: its tree, and its raw text. */
class CallView extends PartView {
  constructor(name, id) {
    super("call", "tool call ");
    this.title.append(element("b", {}, visible(name)), " ", element("small", {}, visible(id)));
    this.tree = new ArgumentsTree();
    this.raw = element("details", {}, element("summary", {}, "raw arguments"));
    this.raw.append(this.body);
    this.element.append(this.tree.box, this.raw);
  }
}

export class MessageView {
  constructor(recording, label) {
    this.recording = recording;
    this.parts = element("div", { class: "parts" });
    this.facts = element("dl", { class: "facts" });
    this.box = element(
      "div",
      { class: "message", tabindex: "0", role: "region", "aria-label": label },
      this.parts,
      this.facts,
    );
    this.reset();
  }

  reset() {
    this.applied = 0;
    this.views = new Map();
    this.changed = new Set();
    this.known = new Map();
    this.parts.replaceChildren();
  }

  /** Shows the message after the first deltas. */
  show(count) {
    if (count < this.applied) this.reset();
    if (count === this.applied && count > 0) return;
    const follows = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - 40;
    for (; this.applied < count; this.applied++) {
      this.apply(this.recording.deltas[this.applied]);
    }
    for (const view of this.changed) view.flush();
    this.changed.clear();
    this.drawFacts();
    if (follows) this.box.scrollTop = this.box.scrollHeight;
  }

  apply([, kind, payload, changes]) {
    switch (kind) {
      case "start":
        this.known.set("model", payload.modelId || "not said");
        break;
      case "text":
      case "thinking": {
        const key = `${kind} ${payload.partIndex}`;
        const view = this.view(key, () => new PartView(kind, payload.refusal ? "refusal" : kind));
        view.pending.push(payload.textDelta);
        if (payload.annotations) view.tag(counted(payload.annotations.length, "annotation"));
        if (payload.redacted) view.tag("redacted");
        break;
      }
      case "tool_call_start":
        this.view(payload.toolCallId, () => new CallView(payload.toolName, payload.toolCallId));
        break;
      case "tool_call_args":
      case "tool_call_end": {
        const view = this.view(payload.toolCallId, () => new CallView("", payload.toolCallId));
        if (payload.argsTextDelta) view.pending.push(payload.argsTextDelta);
        for (const change of changes) view.tree.apply(change);
        if (payload.incomplete) view.tag("incomplete");
        break;
      }
      case "part": {
        const view = this.view(`part ${payload.partIndex}`, () => {
          return new PartView("other", visible(String(payload.part?.kind)));
        });
        view.pending.push(JSON.stringify(payload.part, null, 2));
        break;
      }
      case "usage":
        this.known.set("tokens", tokens(payload));
        if (payload.cost != null) this.known.set("cost", `$${payload.cost} (provider)`);
        break;
      case "done":
        this.known.set("finish reason", payload.finishReason);
        this.end();
        break;
      case "error":
        this.known.set("error", `${payload.errorCode}: ${payload.message ?? "no message"}`);
        this.end();
        break;
    }
  }

  end() {
    const cost = this.recording.cost;
    if (cost !== null) this.known.set("cost", `$${Number(cost[0].toPrecision(4))} (${cost[1]})`);
  }

  view(key, make) {
    let view = this.views.get(key);
    if (view === undefined) {
      view = make();
      this.views.set(key, view);
      this.parts.append(view.element);
    }
    this.changed.add(view);
    return view;
  }

  drawFacts() {
    const rows = [];
    for (const [name, value] of this.known) {
      const group = element("div", { class: name === "error" ? "fact bad" : "fact" });
      group.append(element("dt", {}, name), element("dd", {}, visible(String(value))));
      rows.push(group);
    }
    this.facts.replaceChildren(...rows);
  }
}

function tokens(usage) {
  const known = [
    ["in", usage.inputTokens],
    ["from cache", usage.cacheReadTokens],
    ["to cache", usage.cacheWriteTokens],
    ["out", usage.outputTokens],
    ["reasoning", usage.reasoningTokens],
  ];
  const always = ["in", "out"];
  const told = known.filter(([name, count]) => (always.includes(name) ? count != null : count));
  return told.map(([name, count]) => `${count.toLocaleString("en")} ${name}`).join(", ") || "not said";
}
