// All sandboxes: those that run with what they use, and those that are over.

import { post } from "./api.js";
import { chart } from "./chart.js";
import { act, ask, field } from "./dialog.js";
import { code, empty, h, keyed, plain, replace, say, shown } from "./dom.js";
import { ago, bytes, counted, duration, shortId } from "./format.js";
import { live, refreshSandboxes, ROOM, subscribe } from "./live.js";

export const percent = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} %`;

export function limitOf(usage, name) {
  return usage?.last.limits.find((limit) => limit.name === name)?.value;
}

function activity(sandbox, usage) {
  const status = usage?.last.status;
  if (!status) return sandbox.isRun ? "run" : "does not answer";
  if (status.isEnding) return "ending";
  if (status.runningCommands > 0) return `${counted(status.runningCommands, "command")} running`;
  return `idle for ${duration(status.idleMs)}`;
}

function row(first) {
  const address = `#/sandbox/${encodeURIComponent(first.id)}`;
  const cpu = chart({ label: "CPU", format: percent, atLeast: 10 });
  const memory = chart({ label: "Memory", format: bytes });
  const state = h("span", { class: "muted" });
  const questions = h("span", { class: "chip warn" });
  const processes = h("span", { class: "muted" });
  const name = first.name ?? (first.isRun ? first.command : shortId(first.id));
  const element = h("li", { class: "card sandbox-row" },
    h("div", { class: "sandbox-what" },
      h("a", { class: "sandbox-name", href: address, "data-item": true }, h("span", { class: "dot on", "aria-hidden": "true" }), h("span", { class: "clip" }, shown(name, { limit: 80 }))),
      first.project && code(first.project, { class: "clip muted", title: plain(first.project) }),
      h("div", { class: "line" }, state, processes, questions)),
    cpu.element, memory.element);
  return {
    element,
    update(sandbox) {
      const usage = live.usage.get(sandbox.id);
      say(state, activity(sandbox, usage));
      say(processes, usage ? counted(usage.last.processes, "process", "processes") : "");
      const waiting = [...live.questions.values()].filter((question) => question.session === sandbox.id).length;
      questions.hidden = waiting === 0;
      say(questions, waiting ? counted(waiting, "question") : "");
      cpu.update(usage?.cpu ?? [], { room: ROOM });
      memory.update(usage?.memory ?? [], { room: ROOM, limit: limitOf(usage, "memory") });
    },
  };
}

const OUTCOMES = { Completed: "good", Timeout: "warn", Error: "bad" };

/** How it ended. One that was killed had no time to say it. */
export const endOf = (sandbox) => (OUTCOMES[sandbox.state] ? sandbox.state.toLowerCase() : "ended");

function endedRow(sandbox) {
  const outcome = OUTCOMES[sandbox.state] ?? "";
  return {
    element: h("li", { class: "ended-row" },
      h("a", { href: `#/sandbox/${encodeURIComponent(sandbox.id)}`, "data-item": true, class: "clip" }, shown(sandbox.name ?? shortId(sandbox.id))),
      code(sandbox.project, { class: "clip muted" }),
      h("span", { class: `chip ${outcome}` }, endOf(sandbox)),
      h("span", { class: "muted" }, sandbox.endedAt ? ago(sandbox.endedAt) : ago(sandbox.createdAt))),
  };
}

async function newSandbox() {
  const values = await ask({
    title: "New sandbox",
    action: "Create",
    fields: [
      field("Name", h("input", { name: "name", placeholder: "work", autocomplete: "off", autofocus: true, maxlength: "64" })),
      field("Project", h("input", { name: "project", placeholder: "/home/you/project", autocomplete: "off", spellcheck: "false" }), "The directory to work in. Empty: where the server was started."),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "transaction", checked: true }), h("span", {}, "Keep changes apart until they are applied")),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "ask", checked: true }), h("span", {}, "Let questions wait for an answer")),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "record" }), h("span", {}, "Record terminals")),
    ],
  });
  if (!values) return;
  const made = await act(null, () => post("/v1/sandboxes", {
    name: values.name || undefined,
    project: values.project || undefined,
    transaction: values.transaction ? "overlay" : undefined,
    ask: values.ask ? "always" : undefined,
    settings: values.record ? { "recording.terminal": "output" } : undefined,
  }), (sandbox) => `Created ${sandbox.name ?? shortId(sandbox.id)}`);
  if (made) {
    await refreshSandboxes().catch(() => {});
    location.hash = `#/sandbox/${encodeURIComponent(made.id)}/terminal`;
  }
}

export function sandboxesView() {
  const running = h("ul", { class: "plain stack" });
  const over = h("ul", { class: "plain ended" });
  const count = h("span", { class: "muted" });
  const nothing = empty(
    "No sandbox is running",
    "A sandbox stays until you end it. Commands run in it one after the other, and what they change waits until you apply it.",
    "sandbox create --name work --transaction\nsandbox exec work -- make test",
  );
  const past = h("section", {}, h("h2", { class: "section-title" }, "Ended"), over);
  const element = h("div", {},
    h("header", { class: "view-head" }, h("h1", {}, "Sandboxes"), count, h("span", { class: "spring" }),
      h("button", { class: "button primary", type: "button", onclick: newSandbox }, "New sandbox")),
    nothing, running, past);

  const draw = () => {
    if (live.sandboxes === null) {
      nothing.hidden = true;
      past.hidden = true;
      return;
    }
    const sessions = live.sandboxes.filter((sandbox) => sandbox.isRunning);
    const known = new Set(live.sandboxes.map((sandbox) => sandbox.id));
    const runs = [...live.usage.values()].filter(({ last }) => !last.isSession && !known.has(last.id))
      .map(({ last }) => ({ id: last.id, command: last.command, isRun: true }));
    const all = [...sessions, ...runs];
    keyed(running, all, (sandbox) => sandbox.id, row);
    const ended = live.sandboxes.filter((sandbox) => !sandbox.isRunning).slice(0, 200);
    keyed(over, ended, (sandbox) => `${sandbox.id} ${sandbox.state}`, endedRow);
    nothing.hidden = all.length > 0;
    past.hidden = ended.length === 0;
    say(count, all.length ? `${all.length} running` : "");
  };
  const unsubscribe = subscribe(["sandboxes", "usage", "questions"], draw);
  replace(count);
  draw();
  return { element, title: "Sandboxes", destroy: unsubscribe };
}
