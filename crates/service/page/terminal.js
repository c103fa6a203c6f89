// A terminal on the page: draws a screen, follows the output of a command, and sends what is typed.

import { follow, get, path, post, query, remove } from "./api.js";
import { act, toast } from "./dialog.js";
import { code, empty, h, keyed, plain, replace, say, shown } from "./dom.js";
import { duration, timeOfDay } from "./format.js";
import { Screen } from "./screen.js";

/** Draws a screen into an element, what has changed at each frame. */
export class Drawing {
  constructor(screen, label) {
    this.screen = screen;
    this.past = h("div", { class: "term-past" });
    this.rows = h("div", { class: "term-rows" });
    this.element = h("div", { class: "term", role: "log", "aria-label": label, tabindex: "0" }, this.past, this.rows);
    this.drawn = 0;
    this.isDue = false;
    this.draw();
  }

  /** Draws soon, with everything that comes until then. */
  later() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  show(screen) {
    this.screen = screen;
    this.past.replaceChildren();
    this.drawn = screen.dropped;
    screen.isAllChanged = true;
    this.later();
  }

  draw() {
    const { screen, past, rows, element } = this;
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 24;
    const total = screen.dropped + screen.scrollback.length;
    if (this.drawn < screen.dropped) this.drawn = screen.dropped;
    const made = document.createDocumentFragment();
    for (; this.drawn < total; this.drawn += 1) made.append(drawRow(screen.scrollback[this.drawn - screen.dropped]));
    past.append(made);
    while (past.childElementCount > screen.scrollback.length) past.firstElementChild.remove();
    while (rows.childElementCount < screen.rows) rows.append(h("div", { class: "term-row" }));
    while (rows.childElementCount > screen.rows) rows.lastElementChild.remove();
    if (this.cursorRow !== undefined) screen.touch(this.cursorRow);
    screen.touch(screen.y);
    this.cursorRow = screen.y;
    for (let at = 0; at < screen.rows; at += 1) {
      if (!screen.isAllChanged && !screen.changed.has(at)) continue;
      const cursor = at === screen.y && screen.isCursorShown ? screen.x : -1;
      rows.children[at].replaceWith(drawRow(screen.lines[at] ?? [], cursor));
    }
    screen.changed.clear();
    screen.isAllChanged = false;
    if (isAtEnd) element.scrollTop = element.scrollHeight;
  }
}

function drawRow(cells, cursor = -1) {
  const row = h("div", { class: "term-row" });
  let run = "";
  let style = null;
  const flush = () => {
    if (run) row.append(styled(run, style));
    run = "";
  };
  for (let at = 0; at < Math.max(cells.length, cursor + 1); at += 1) {
    const cell = cells[at];
    if (at === cursor) {
      flush();
      row.append(h("span", { class: "term-cursor" }, cell?.text || " "));
      continue;
    }
    if (!cell) {
      if (style !== null) flush();
      style = null;
      run += " ";
      continue;
    }
    if (cell.isWide) {
      flush();
      const wide = styled(cell.text, cell.style);
      wide.classList.add("term-wide");
      row.append(wide);
      continue;
    }
    if (cell.style !== style) flush();
    style = cell.style;
    run += cell.text;
  }
  flush();
  return row;
}

function styled(text, style) {
  const element = h("span", {}, text);
  if (!style) return element;
  const [fg, bg] = style.inverse ? [style.bg ?? "page", style.fg ?? "text"] : [style.fg, style.bg];
  for (const [side, colour] of [["fg", fg], ["bg", bg]]) {
    if (typeof colour === "number") element.classList.add(`${side}-${style.bold && side === "fg" && colour < 8 ? colour + 8 : colour}`);
    else if (colour === "page" || colour === "text") element.classList.add(`${side}-${colour}`);
    else if (colour) element.style[side === "fg" ? "color" : "backgroundColor"] = colour;
  }
  for (const name of ["bold", "dim", "italic", "underline", "strike", "hidden"]) {
    if (style[name]) element.classList.add(`term-${name}`);
  }
  return element;
}

/** What a key sends to a program. */
function bytesOf(event) {
  const named = {
    Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", ArrowUp: "\x1b[A", ArrowDown: "\x1b[B", ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D",
    Home: "\x1b[H", End: "\x1b[F", Delete: "\x1b[3~", PageUp: "\x1b[5~", PageDown: "\x1b[6~",
  };
  if (event.metaKey || event.isComposing) return null;
  if (event.ctrlKey && event.key.length === 1) {
    const point = event.key.toUpperCase().charCodeAt(0);
    return point >= 64 && point <= 95 ? String.fromCharCode(point - 64) : null;
  }
  if (named[event.key]) return named[event.key];
  if (event.key.length >= 1 && [...event.key].length === 1) return (event.altKey ? "\x1b" : "") + event.key;
  return null;
}

const decoder = () => new TextDecoder();

/** One command: its output as it comes, and its input where it may be typed into. */
function commandTerminal(sandbox, command) {
  const address = path("sandboxes", sandbox, "commands", String(command.number));
  const screen = new Screen(command.hasTerminal ? 100 : 120, 24, { newLines: !command.hasTerminal });
  const drawing = new Drawing(screen, `Output of ${plain(command.command, 80)}`);
  const bytes = decoder();
  const state = h("span", { class: "muted" }, "");
  let isTyping = false;
  let waiting = "";
  let isRunning = command.state === "running";

  const stop = follow((last) => `${address}/output${query({ since: last ?? 0 })}`, {
    onEvent(name, data) {
      if (name === "output") {
        const text = data.encoding === "base64" ? bytes.decode(Uint8Array.from(atob(data.data), (c) => c.charCodeAt(0)), { stream: true }) : data.data;
        screen.write(text);
        drawing.later();
      } else if (name === "dropped") {
        screen.write(`\r\n\x1b[2m[${data.to - data.from} bytes are not kept any more]\x1b[0m\r\n`);
      } else if (name === "end") {
        isRunning = false;
        ended(data);
        return "end";
      }
      return undefined;
    },
    onLost: (problem) => say(state, problem?.message ?? "connection lost"),
  });

  function ended(data) {
    const how = data.state === "exited" ? `ended with ${data.exitCode}` : data.state === "signalled" ? `ended by signal ${data.signal}` : data.state;
    say(state, data.message ? `${how}: ${plain(data.message)}` : how);
    screen.isCursorShown = false;
    drawing.later();
    buttons.hidden = true;
  }

  async function type(text) {
    waiting += text;
    if (isTyping) return;
    isTyping = true;
    while (waiting && isRunning) {
      const part = waiting.slice(0, 4096);
      waiting = waiting.slice(part.length);
      try {
        await post(`${address}/stdin`, { data: part });
      } catch (error) {
        waiting = "";
        toast(error.message, "failed");
      }
    }
    isTyping = false;
  }

  function fit() {
    if (!command.hasTerminal || !isRunning || !drawing.element.isConnected) return;
    const probe = h("span", { class: "term-probe" }, "0".repeat(50));
    drawing.rows.append(probe);
    const { width, height } = probe.getBoundingClientRect();
    probe.remove();
    if (!width) return;
    const columns = Math.max(20, Math.floor((drawing.element.clientWidth - 32) / (width / 50)));
    const rows = Math.max(8, Math.floor((drawing.element.clientHeight - 24) / height));
    if (columns === screen.columns && rows === screen.rows) return;
    screen.resize(columns, rows);
    drawing.later();
    post(`${address}/resize`, { rows, columns }).catch(() => {});
  }

  const buttons = h("span", { class: "line" },
    h("button", { class: "button small", type: "button", onclick: (event) => act(event.currentTarget, () => post(`${address}/signal`, { signal: "INT" })) }, "Interrupt"),
    h("button", { class: "button small deny", type: "button", onclick: (event) => act(event.currentTarget, () => remove(address), "The command has ended") }, "End"));
  buttons.hidden = !isRunning;
  if (command.hasTerminal && isRunning) {
    drawing.element.dataset.typing = "";
    drawing.element.setAttribute("role", "textbox");
    drawing.element.setAttribute("aria-multiline", "true");
    drawing.element.addEventListener("keydown", (event) => {
      // A way out for who uses keys only.
      if (event.key === "Tab" && event.shiftKey) return;
      const text = bytesOf(event);
      if (text === null || !isRunning) return;
      event.preventDefault();
      type(text);
    });
    drawing.element.addEventListener("paste", (event) => {
      event.preventDefault();
      type(event.clipboardData.getData("text/plain").replaceAll("\n", "\r"));
    });
  }
  const resized = new ResizeObserver(() => fit());
  resized.observe(drawing.element);

  if (!isRunning) ended(command);
  else say(state, command.hasTerminal ? "running; click into it to type" : "running");
  return {
    element: h("div", { class: "term-box" },
      h("div", { class: "term-head" }, h("span", { class: "muted" }, `#${command.number}`), code(command.command, { class: "clip grow" }), state, buttons),
      drawing.element),
    focus: () => drawing.element.focus(),
    destroy() {
      stop();
      resized.disconnect();
    },
  };
}

function commandItem(first, choose) {
  const state = h("span", { class: "chip" });
  const time = h("span", { class: "muted" });
  const element = h("button", { class: "command-item", type: "button", "data-item": true, onclick: () => choose(first.number) },
    h("span", { class: "command-line clip" }, shown(first.command || `command ${first.number}`, { limit: 120 })),
    h("span", { class: "line" }, state, time));
  return {
    element,
    update(command) {
      const isGood = command.state === "exited" && command.exitCode === 0;
      say(state, command.state === "exited" ? `exit ${command.exitCode}` : command.state);
      state.className = `chip ${command.state === "running" ? "live" : isGood ? "good" : "bad"}`;
      say(time, command.state === "running" ? `for ${duration(command.runningMs)}` : command.startedAt ? timeOfDay(command.startedAt) : "");
    },
  };
}

/** The commands of a sandbox whose output is kept, and a new one. */
export function terminalTab(sandbox) {
  const list = h("div", { class: "command-list", "aria-label": "Commands" });
  const box = h("div", { class: "term-place" });
  const nothing = empty("No command yet", "Run one below, or start one in the background from a shell. Its output is kept here.", `sandbox exec -d ${sandbox.name ?? sandbox.id} -- make test`);
  const input = h("input", { type: "text", name: "command", "aria-label": "Command", placeholder: "make test", autocomplete: "off", spellcheck: "false" });
  let terminal = null;
  let chosen = null;
  let commands = [];

  const choose = (number, { focus = false } = {}) => {
    const command = commands.find((one) => one.number === number);
    if (!command) return;
    chosen = number;
    terminal?.destroy();
    terminal = commandTerminal(sandbox.id, command);
    replace(box, terminal.element);
    for (const child of list.children) child.removeAttribute("aria-current");
    list.known?.get(number)?.element.setAttribute("aria-current", "true");
    if (focus) terminal.focus();
  };

  const refresh = async () => {
    if (document.hidden) return;
    try {
      ({ commands } = await get(path("sandboxes", sandbox.id, "commands")));
    } catch {
      return;
    }
    commands = commands.filter((command) => command.isHeld).reverse();
    keyed(list, commands, (command) => command.number, (command) => commandItem(command, choose));
    nothing.hidden = commands.length > 0;
    list.hidden = box.hidden = commands.length === 0;
    if (chosen === null && commands.length) choose(commands[0].number);
  };

  const run = async (button, argv) => {
    const started = await act(button, () => post(path("sandboxes", sandbox.id, "commands"), { argv, terminal: { rows: 24, columns: 100 } }));
    if (!started) return;
    await refresh();
    choose(started.number, { focus: true });
  };
  const button = h("button", { class: "button primary", type: "submit" }, "Run");
  const form = h("form", {
    class: "run-form",
    onsubmit: (event) => {
      event.preventDefault();
      if (!input.value.trim()) return;
      run(button, ["sh", "-c", input.value]);
      input.value = "";
    },
  }, input, button, h("button", { class: "button", type: "button", onclick: (event) => run(event.currentTarget, ["sh", "-i"]) }, "Shell"));

  refresh();
  const timer = setInterval(refresh, 2000);
  return {
    element: h("div", {}, sandbox.isRunning && form, nothing, h("div", { class: "terminal-layout" }, list, box)),
    destroy() {
      clearInterval(timer);
      terminal?.destroy();
    },
  };
}
