// Arguments of a tool call as a tree that grows.
//
// In: changes (path, operation, value), as `PartialJson.changes` of deltafold has them.
// Out: nested lists.
//
// Law: of a long list only the first members are shown, until the reader asks for more.

import { GrowingText, counted, element, visible } from "./text.js";

const MEMBERS_AT_ONCE = 100;

/** One value of the tree; its element is made with it. */
class Branch {
  constructor(name, value) {
    this.label = element("span", { class: "key" }, name);
    this.value = element("span", { class: "value" });
    this.element = element("li", {}, this.label, " ", this.value);
    this.set(value);
  }

  set(value) {
    this.members = null;
    this.text = null;
    this.list?.remove();
    this.list = null;
    this.value.className = "value";
    if (typeof value === "string") {
      this.value.classList.add("string");
      this.value.replaceChildren();
      this.text = new GrowingText(this.value);
      this.append(value);
    } else if (value !== null && typeof value === "object") {
      this.members = new Map();
      this.isArray = Array.isArray(value);
      this.hidden = [];
      this.list = element("ul");
      this.element.append(this.list);
      for (const [name, member] of Object.entries(value)) this.setMember(name, member);
      this.count();
    } else {
      this.value.classList.add("scalar");
      this.value.replaceChildren(JSON.stringify(value));
    }
  }

  append(text) {
    this.text?.append(visible(text));
  }

  member(name) {
    return this.members?.get(String(name));
  }

  setMember(name, value) {
    const known = this.member(name);
    if (known !== undefined) {
      known.set(value);
      return;
    }
    const made = new Branch(this.isArray ? `${name}` : visible(String(name)), value);
    this.members?.set(String(name), made);
    if (this.list.childElementCount < MEMBERS_AT_ONCE) this.list.append(made.element);
    else this.hide(made);
    this.count();
  }

  hide(member) {
    this.hidden.push(member);
    if (this.more === undefined || !this.more.isConnected) {
      this.more = element("button", { type: "button", class: "more" });
      this.more.addEventListener("click", () => this.showMore());
      this.list.after(this.more);
    }
    this.more.textContent = `show ${counted(this.hidden.length, "more member")}`;
  }

  showMore() {
    const shown = this.hidden.splice(0, MEMBERS_AT_ONCE);
    this.list.append(...shown.map((member) => member.element));
    if (this.hidden.length === 0) this.more.remove();
    else this.more.textContent = `show ${counted(this.hidden.length, "more member")}`;
  }

  count() {
    const [open, close] = this.isArray ? "[]" : "{}";
    this.value.textContent = this.members.size === 0 ? open + close : `${open}${this.members.size}${close}`;
  }
}

export class ArgumentsTree {
  constructor() {
    this.box = element("ul", { class: "tree" });
    this.root = null;
  }

  apply([path, operation, value]) {
    if (path.length === 0) {
      if (operation === "append") this.root?.append(value);
      else if (this.root === null) {
        this.root = new Branch("arguments", value);
        this.box.append(this.root.element);
      } else this.root.set(value);
      return;
    }
    let holder = this.root;
    for (const name of path.slice(0, -1)) holder = holder?.member(name);
    const last = path[path.length - 1];
    if (operation === "append") holder?.member(last)?.append(value);
    else holder?.setMember(last, value);
  }
}
