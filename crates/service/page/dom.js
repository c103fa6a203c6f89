// Elements, made of text and never of markup. Whatever comes from a sandbox passes through `shown`, which makes visible what would
// otherwise hide, reorder or act.

/** An element. Properties that are functions are listeners; children are nodes or text. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  append(element, children);
  return element;
}

const ICONS = {
  question: "M9.1 9a3 3 0 0 1 5.8 1c0 2-3 3-3 3m.1 4h0M12 22a10 10 0 1 0 0-20 10 10 0 0 0 0 20z",
  sandbox: "M12 3l8 4.500v9L12 21l-8-4.500v-9zM12 12l8-4.500M12 12v9M12 12L4 7.500",
  recording: "M12 22a10 10 0 1 0 0-20 10 10 0 0 0 0 20zM10 8.500l5 3.500-5 3.500z",
  audit: "M8 6h12M8 12h12M8 18h12M3.500 6h.01M3.500 12h.01M3.500 18h.01",
  theme: "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z",
  help: "M5 7h.01M9 7h.01M13 7h.01M17 7h.01M5 12h.01M19 12h.01M8 16h8M3 4h18v16H3z",
  leave: "M9 21H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2h4M16 17l5-5-5-5M21 12H9",
  file: "M14 3H6v18h12V7zM14 3v4h4",
  network: "M12 22a10 10 0 1 0 0-20 10 10 0 0 0 0 20zM2 12h20M12 2c6 6 6 14 0 20M12 2c-6 6-6 14 0 20",
  key: "M11 8.500a4.500 4.500 0 1 0 9 0a4.500 4.500 0 1 0-9 0M12.300 11.700L4 20M7 17l2.500 2.500",
  palisade: "M4.500 21V9l2-3 2 3v12M10 21V7l2-3 2 3v14M15.500 21V9l2-3 2 3v12M2.500 13h19M2.500 17h19",
  terminal: "M4 17l5-5-5-5M12 19h8",
  check: "M5 12.500l4.500 4.500L19 7.500",
};

export function icon(name) {
  const path = svg("path", { d: ICONS[name], fill: "none", stroke: "currentColor", "stroke-width": 1.75, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, path);
}

/** What has no shape of its own, or changes that of its neighbours: controls, bidirectional marks, joiners, fillers, tags. */
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ud800-\udfff\u{e0000}-\u{e0fff}]/u;

const NAMES = { "\n": "\\n", "\t": "\\t", "\r": "\\r", "\u001b": "\\e", "\u0000": "\\0" };

function name(character) {
  return NAMES[character] ?? `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Text from elsewhere, as nodes: invisible characters become their names. `keep` are those that stay as they are. */
export function shown(text, { keep = "", limit = 4000 } = {}) {
  const nodes = [];
  let plain = "";
  let count = 0;
  for (const character of String(text ?? "")) {
    if (++count > limit) {
      plain += "…";
      break;
    }
    if (INVISIBLE.test(character) && !keep.includes(character)) {
      if (plain) nodes.push(plain);
      plain = "";
      nodes.push(h("span", { class: "invisible" }, name(character)));
    } else {
      plain += character;
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

/** The same where there can be no nodes: accessible names, titles. */
export function plain(text, limit = 300) {
  return shown(text, { limit }).map((node) => (typeof node === "string" ? node : node.textContent)).join("");
}

/** A name, path or command line, each character where it is: text that runs backwards does not. */
export function code(text, properties = {}) {
  return h("code", { ...properties, class: `literal ${properties.class ?? ""}` }, shown(text));
}

/** Replaces the text of an element, if it is another. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Keeps the children of an element as the items are. What is there stays, with its focus; `make` returns { element, update }. */
export function keyed(parent, items, keyOf, make) {
  const known = (parent.known ??= new Map());
  const wanted = new Set();
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    wanted.add(key);
    let child = known.get(key);
    if (!child) {
      child = make(item);
      child.element.classList.add("appears");
      known.set(key, child);
    }
    child.update?.(item);
    if (child.element === at) at = at.nextElementSibling;
    else parent.insertBefore(child.element, at);
  }
  for (const [key, child] of known) {
    if (!wanted.has(key)) {
      child.destroy?.();
      child.element.remove();
      known.delete(key);
    }
  }
}

/** Something that is not there, and how it would come to be. */
export function empty(title, text, example) {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, text), example && h("pre", { class: "example" }, h("code", {}, example)));
}
