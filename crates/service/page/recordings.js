// Recordings of terminals, and a player for them.

import { get, path, query, read } from "./api.js";
import { act } from "./dialog.js";
import { code, empty, h, keyed, plain, replace, say, shown } from "./dom.js";
import { ago, bytes, clock, shortId } from "./format.js";
import { Screen } from "./screen.js";
import { Drawing } from "./terminal.js";

const MAX_TEXT = 24 << 20;
const SPEEDS = [0.5, 1, 2, 4, 8];
/** Longer pauses are shortened to this, if somebody wants that. */
const IDLE_LIMIT = 2;

/** The events of an asciicast file. One line that is wrong ends it: what comes after cannot be trusted to be in order. */
function parse(text) {
  const lines = text.split("\n");
  const header = JSON.parse(lines[0]);
  const events = [];
  for (const line of lines.slice(1)) {
    if (!line) continue;
    try {
      const [time, kind, data] = JSON.parse(line);
      if (typeof time !== "number" || typeof data !== "string") break;
      if (kind === "o" || kind === "r" || kind === "m") events.push({ time, kind, data });
    } catch {
      break;
    }
  }
  return { header, events };
}

/** Times without long pauses. */
function paced(events, isShortened) {
  let shift = 0;
  let before = 0;
  return events.map((event) => {
    const pause = event.time - before;
    before = event.time;
    if (isShortened && pause > IDLE_LIMIT) shift += pause - IDLE_LIMIT;
    return { ...event, at: event.time - shift };
  });
}

class Player {
  constructor({ header, events }, label) {
    this.header = header;
    this.raw = events;
    this.isShortened = true;
    this.speed = 1;
    this.position = 0;
    this.next = 0;
    this.timer = null;
    this.drawing = new Drawing(this.fresh(), label);
    this.play = h("button", { class: "button primary", type: "button", onclick: () => this.toggle() }, "Play");
    this.bar = h("input", { type: "range", min: "0", max: "1000", value: "0", class: "seek", "aria-label": "Position", oninput: () => this.seek((this.bar.value / 1000) * this.length) });
    this.time = h("span", { class: "muted tabular" });
    this.speeds = h("select", { "aria-label": "Speed", onchange: () => { this.speed = Number(this.speeds.value); } }, SPEEDS.map((speed) => h("option", { value: speed, selected: speed === 1 }, `${speed}×`)));
    const shorten = h("label", { class: "check" }, h("input", { type: "checkbox", checked: true, onchange: (event) => { this.isShortened = event.target.checked; this.pace(); this.seek(Math.min(this.position, this.length)); } }), h("span", {}, "Short pauses"));
    this.markers = h("div", { class: "markers" });
    this.element = h("div", { class: "player" }, this.drawing.element, h("div", { class: "controls" }, this.play, this.bar, this.time, this.speeds, shorten), this.markers);
    this.element.addEventListener("keydown", (event) => {
      if (event.target.matches("input, select, button")) return;
      const by = { ArrowRight: 5, ArrowLeft: -5 }[event.key];
      if (event.key === " ") this.toggle();
      else if (by) this.seek(this.position + by);
      else return;
      event.preventDefault();
    });
    this.pace();
    this.seek(0);
  }

  fresh() {
    const size = (value, otherwise) => (Number.isInteger(value) && value > 0 && value <= 500 ? value : otherwise);
    // A command without a terminal ends its lines with a line feed alone.
    const newLines = !this.raw.some((event) => event.kind === "o" && event.data.includes("\r\n"));
    this.screen = new Screen(size(this.header.width, 80), size(this.header.height, 24), { newLines });
    return this.screen;
  }

  pace() {
    this.events = paced(this.raw, this.isShortened);
    this.length = this.events.at(-1)?.at ?? 0;
    const markers = this.events.filter((event) => event.kind === "m").slice(0, 100);
    replace(this.markers, markers.map((event) => h("button", { class: "marker", type: "button", onclick: () => this.seek(event.at) }, h("span", { class: "muted tabular" }, clock(event.at * 1000)), h("span", { class: "clip" }, shown(event.data, { limit: 120 })))));
  }

  seek(to) {
    const target = Math.max(0, Math.min(this.length, to));
    if (target < this.position || this.next === 0) {
      this.next = 0;
      this.drawing.show(this.fresh());
    }
    this.position = target;
    this.catchUp();
  }

  catchUp() {
    while (this.next < this.events.length && this.events[this.next].at <= this.position + 1e-6) {
      const { kind, data } = this.events[this.next];
      if (kind === "o") this.screen.write(data);
      else if (kind === "r") {
        const [columns, rows] = data.split("x").map(Number);
        if (columns > 0 && rows > 0) this.screen.resize(columns, rows);
      }
      this.next += 1;
    }
    this.drawing.later();
    this.bar.value = String(this.length ? Math.round((this.position / this.length) * 1000) : 1000);
    say(this.time, `${clock(this.position * 1000)} / ${clock(this.length * 1000)}`);
  }

  toggle() {
    if (this.timer) this.pause();
    else {
      if (this.position >= this.length) this.seek(0);
      let before = performance.now();
      this.timer = setInterval(() => {
        const now = performance.now();
        this.position = Math.min(this.length, this.position + ((now - before) / 1000) * this.speed);
        before = now;
        this.catchUp();
        if (this.position >= this.length) this.pause();
      }, 33);
      say(this.play, "Pause");
    }
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    say(this.play, "Play");
  }
}

const addressOf = ({ id, command }) => `${path("recordings", id)}${query({ command })}`;

async function load(recording) {
  let text = "";
  let isCut = false;
  await read(addressOf(recording), (part) => {
    text += part;
    isCut = text.length > MAX_TEXT;
    return !isCut;
  });
  return { ...parse(text), isCut };
}

async function save(recording) {
  const parts = [];
  await read(addressOf(recording), (part) => { parts.push(part); });
  const address = URL.createObjectURL(new Blob(parts, { type: "application/x-asciicast" }));
  const link = h("a", { href: address, download: `${shortId(recording.id)}${recording.command ? `-${recording.command}` : ""}.cast` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function recordingsView(sandbox) {
  const list = h("ul", { class: "plain stack" });
  const place = h("section", { class: "player-place", hidden: true });
  const nothing = empty("No recording", "With --record, what a command writes to its terminal is kept with its times, and can be played again.", "sandbox run --record -- make test\nsandbox create --name work --record");
  nothing.hidden = true;
  const problem = h("p", { class: "problem" });
  let player = null;

  const show = (button, recording) => act(button, async () => {
    const loaded = await load(recording);
    player?.pause();
    player = new Player(loaded, `Recording of ${plain(recording.title ?? "", 80)}`);
    replace(place,
      h("div", { class: "bar" }, code(recording.title ?? shortId(recording.id), { class: "clip grow" }),
        h("button", { class: "button small", type: "button", onclick: (event) => act(event.currentTarget, () => save(recording)) }, "Download"),
        h("button", { class: "button small", type: "button", onclick: () => { player.pause(); player = null; place.hidden = true; replace(place); } }, "Close")),
      loaded.isCut && h("p", { class: "warning" }, "Only the first part is shown: it is very long. Download it, or use sandbox replay."),
      player.element);
    place.hidden = false;
    place.scrollIntoView({ block: "nearest" });
    player.toggle();
    player.drawing.element.focus({ preventScroll: true });
  });

  const item = (recording) => ({
    element: h("li", {}, h("button", { class: "card recording", type: "button", "data-item": true, onclick: (event) => show(event.currentTarget, recording) },
      h("span", { class: "grow clip literal" }, shown(recording.title ?? `command ${recording.command ?? ""}`, { limit: 200 })),
      h("span", { class: "muted" }, shown(recording.name ?? shortId(recording.id)), recording.command ? ` #${recording.command}` : ""),
      h("span", { class: "muted" }, recording.startedAt ? ago(recording.startedAt) : ""),
      h("span", { class: "muted tabular" }, `${recording.columns}×${recording.rows} · ${bytes(recording.bytes)}`))),
  });

  const refresh = async () => {
    try {
      const { recordings } = await get(`/v1/recordings${query({ sandbox })}`);
      keyed(list, recordings, ({ id, command }) => `${id} ${command}`, item);
      nothing.hidden = recordings.length > 0;
      replace(problem);
    } catch (error) {
      replace(problem, shown(error.message));
    }
  };
  refresh();
  const timer = setInterval(() => { if (!document.hidden) refresh(); }, 5000);
  return {
    element: h("div", {}, sandbox ? null : h("header", { class: "view-head" }, h("h1", {}, "Recordings")), problem, place, nothing, list),
    title: "Recordings",
    destroy() {
      clearInterval(timer);
      player?.pause();
    },
  };
}
