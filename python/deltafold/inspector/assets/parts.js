// The message while it grows: its parts, usage, cost and end.
//
// In: deltas in their order, and what their fold says.  Out: one element for each part, and the message as
// JSON.
//
// Laws: going forward applies the deltas in between; going back begins again.  The texts of one step
// are joined before they reach the page.

import { markOf } from "./problems.js";
import { ArgumentsTree } from "./tree.js";
import { GrowingText, counted, element, visible } from "./text.js";

/** One part on the page, and its wire form. */
class PartView {
  constructor(kind, title, wire) {
    this.wire = wire;
    this.said = [];
    this.title = element("h4", {}, title);
    this.body = element("div", { class: "text" });
    this.element = element("section", { class: `grown-part ${kind}` }, this.title, this.body);
    this.text = new GrowingText(this.body);
    this.pending = [];
  }

  tag(text) {
    this.title.append(" ", element("span", { class: "tag" }, text));
  }

  say(text) {
    this.said.push(text);
    this.pending.push(text);
  }

  flush() {
    if (this.pending.length > 0) this.text.append(this.pending.join(""));
    this.pending.length = 0;
  }

  /** Returns the part in its wire form. */
  toWire() {
    const { kind, payload, providerState } = this.wire;
    const text = { [kind === "tool_call" ? "rawArgsText" : "text"]: this.said.join("") };
    return { kind, payload: { ...payload, ...text }, providerState };
  }
}

/** A part that a provider sent whole. */
class WholeView extends PartView {
  constructor(part) {
    super("other", visible(String(part?.kind)), part);
    this.pending.push(JSON.stringify(part, null, 2));
  }

  toWire() {
    return this.wire;
  }
}

/** A tool call: its tree, and its raw text. */
class CallView extends PartView {
  constructor(name, id) {
    super("call", "tool call ", {
      kind: "tool_call",
      payload: { toolCallId: id, toolName: name, arguments: null },
    });
    this.title.append(element("b", {}, visible(name)), " ", element("small", {}, visible(id)));
    this.tree = new ArgumentsTree();
    this.raw = element("details", {}, element("summary", {}, "raw arguments"));
    this.raw.append(this.body);
    this.element.append(this.tree.box, this.raw);
  }

  /** Says whether the call may run, as the fold of the whole answer does. */
  judge(call, isCut) {
    if (call === undefined) return;
    const why = call.runnable ? "runnable" : `not runnable: ${visible(call.reason)}`;
    this.title.append(" ", markOf(call.runnable ? "well" : isCut ? "cut" : "call", why));
    if (call.repaired !== null) this.tag(visible(call.repaired));
  }
}

export class MessageView {
  constructor(recording, label) {
    this.recording = recording;
    this.calls = new Map((recording.answer?.calls ?? []).map((call) => [call.id, call]));
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
    this.finishReason = null;
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
      case "thinking":
        this.applyText(kind, payload);
        break;
      case "tool_call_start":
      case "tool_call_args":
      case "tool_call_end":
        this.applyCall(kind, payload, changes);
        break;
      case "part":
        this.view(`part ${payload.partIndex}`, () => new WholeView(payload.part));
        break;
      case "usage":
        this.known.set("tokens", tokens(payload));
        if (payload.cost != null) this.known.set("cost", `$${payload.cost} (provider)`);
        break;
      case "done":
        this.finishReason = payload.finishReason;
        this.known.set("finish reason", payload.finishReason);
        this.end();
        break;
      case "error":
        this.known.set("error", `${payload.errorCode}: ${payload.message ?? "no message"}`);
        this.end();
        break;
    }
  }

  applyText(kind, payload) {
    const view = this.view(`${kind} ${payload.partIndex}`, () => {
      const title = payload.refusal ? markOf("refusal") : kind;
      return new PartView(kind, title, { kind, payload: {} });
    });
    view.say(payload.textDelta);
    const part = view.wire.payload;
    if (payload.refusal) part.refusal = true;
    if (payload.annotations) {
      part.annotations = [...(part.annotations ?? []), ...payload.annotations];
      view.tag(counted(payload.annotations.length, "annotation"));
    }
    if (payload.redacted) {
      part.redacted = true;
      view.tag("redacted");
    }
    if (payload.providerState) view.wire.providerState = payload.providerState;
  }

  applyCall(kind, payload, changes) {
    const id = payload.toolCallId;
    const view = this.view(id, () => new CallView(payload.toolName ?? "", id));
    if (payload.inputFormat) view.wire.payload.inputFormat = payload.inputFormat;
    if (payload.providerState) view.wire.providerState = payload.providerState;
    if (payload.argsTextDelta) view.say(payload.argsTextDelta);
    for (const change of changes) view.tree.apply(change);
    if (kind !== "tool_call_end") return;
    // Those of a call that has ended are read from its text.
    delete view.wire.payload.arguments;
    if (payload.incomplete) view.wire.payload.incomplete = true;
    view.judge(this.calls.get(id), payload.incomplete);
  }

  /** Returns the message as far as it is shown, in the JSON that `Message.from_json` reads. */
  toJson() {
    const meta = this.finishReason === null ? {} : { meta: { finishReason: this.finishReason } };
    const parts = [...this.views.values()].map((view) => view.toWire());
    return JSON.stringify({ role: "assistant", parts, ...meta }, null, 2);
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
      const title = name === "error" ? markOf("error") : name;
      const group = element("div", { class: name === "error" ? "fact bad" : "fact" });
      group.append(element("dt", {}, title), element("dd", {}, visible(String(value))));
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
