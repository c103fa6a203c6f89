// One sandbox: what it uses, what it does, what it changed.

import { get, path, post, query, remove } from "./api.js";
import { eventsPanel } from "./audit.js";
import { changesTab } from "./changes.js";
import { chart } from "./chart.js";
import { checkpointsTab } from "./checkpoints.js";
import { act, ask, confirm, field, toast } from "./dialog.js";
import { code, empty, h, replace, say, shown } from "./dom.js";
import { bytes, duration, shortId, timeOfDay } from "./format.js";
import { live, refreshSandboxes, ROOM, subscribe } from "./live.js";
import { recordingsView } from "./recordings.js";
import { endOf, limitOf, percent } from "./sandboxes.js";
import { terminalTab } from "./terminal.js";

const TABS = [
  { name: "overview", label: "Overview", make: overviewTab },
  { name: "terminal", label: "Terminal", make: terminalTab },
  { name: "changes", label: "Changes", make: changesTab, needs: (sandbox) => sandbox.hasTransaction },
  { name: "checkpoints", label: "Checkpoints", make: checkpointsTab, needs: (sandbox) => sandbox.hasTransaction },
  { name: "recordings", label: "Recordings", make: (sandbox) => recordingsView(sandbox.id) },
  { name: "events", label: "Events", make: (sandbox) => eventsPanel({ sandbox: sandbox.id, since: "" }) },
];

function fact(label, ...value) {
  return h("div", {}, h("dt", {}, label), h("dd", {}, value));
}

function overviewTab(sandbox) {
  const cpu = chart({ label: "CPU", format: percent, height: 120, atLeast: 10, isLarge: true });
  const memory = chart({ label: "Memory", format: bytes, height: 120, isLarge: true });
  const processes = chart({ label: "Processes", format: (value) => String(Math.round(value)), height: 120, atLeast: 4, isLarge: true });
  const now = h("dl", { class: "facts wide" });
  const charts = h("div", { class: "charts" }, cpu.element, memory.element, processes.element);
  charts.hidden = !sandbox.isRunning;
  const words = {};
  const say2 = (label, text) => {
    words[label] ??= now.appendChild(fact(label, "")).querySelector("dd");
    say(words[label], text);
  };
  const draw = () => {
    const usage = live.usage.get(sandbox.id);
    if (!usage) return;
    const { last } = usage;
    cpu.update(usage.cpu, { room: ROOM });
    memory.update(usage.memory, { room: ROOM, limit: limitOf(usage, "memory") });
    processes.update(usage.processes, { room: ROOM, limit: limitOf(usage, "processes") });
    const status = last.status;
    say2("Commands", status ? String(status.runningCommands) : "–");
    say2("Idle", status?.idleMs === null || !status ? "–" : duration(status.idleMs));
    say2("Questions", status ? String(status.questions) : "–");
    say2("CPU time", duration(last.cpuMs));
    say2("Threads", String(last.threads));
    say2("Read, written", last.readBytes === null ? "–" : `${bytes(last.readBytes)}, ${bytes(last.writtenBytes)}`);
    const ends = [status?.expiresInMs, status?.idleExpiresInMs].filter((time) => time !== null && time !== undefined);
    say2("Ends", ends.length ? `in ${duration(Math.min(...ends))}` : "when you end it");
  };
  const unsubscribe = subscribe(["usage"], draw);
  draw();
  return {
    element: h("div", {}, charts, now,
      h("dl", { class: "facts wide" },
        fact("Project", code(sandbox.project)),
        fact("Id", code(sandbox.id)),
        fact("Isolation", sandbox.level ?? "–"),
        fact("Presets", sandbox.presets.length ? shown(sandbox.presets.join(", ")) : "default"),
        fact("Created", timeOfDay(sandbox.createdAt)),
        sandbox.endedAt && fact("Ended", timeOfDay(sandbox.endedAt), sandbox.endReason && [", ", shown(sandbox.endReason)]),
        fact("Changes", sandbox.hasTransaction ? "wait until they are applied" : "are made in the project itself"))),
    destroy: unsubscribe,
  };
}

async function extend(sandbox, button) {
  const values = await ask({
    title: "More time",
    action: "Extend",
    fields: [field("Time from now", h("select", { name: "seconds", autofocus: true }, [["900", "15 minutes"], ["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"]].map(([value, label]) => h("option", { value }, label))))],
  });
  if (values) await act(button, () => post(path("sandboxes", sandbox.id, "extend"), { seconds: Number(values.seconds) }), "It has more time");
}

async function endIt(sandbox, button) {
  const agreed = await confirm({
    title: `End ${sandbox.name ?? shortId(sandbox.id)}?`,
    body: [h("p", {}, "Its commands are ended. "), sandbox.hasTransaction && h("p", {}, "Changes that wait are kept, until you apply or discard them.")],
    action: sandbox.isRunning ? "End" : "Remove",
    danger: true,
  });
  if (!agreed) return;
  button.disabled = true;
  try {
    await remove(path("sandboxes", sandbox.id));
    toast("The sandbox is gone");
    location.hash = "#/sandboxes";
  } catch (error) {
    if (error.status === 409) await discardToo(sandbox, error.message);
    else toast(error.message, "failed");
  }
  button.disabled = false;
  refreshSandboxes().catch(() => {});
}

/** It has ended, and what it changed is still there. */
async function discardToo(sandbox, told) {
  const agreed = await confirm({
    title: "Its changes wait",
    body: [h("p", {}, "The sandbox has ended, and what it changed is kept."), h("p", { class: "muted" }, shown(told)), h("p", {}, "If you remove it with its changes, they cannot be brought back.")],
    action: "Remove with its changes",
    danger: true,
  });
  if (!agreed) return;
  await act(null, () => remove(`${path("sandboxes", sandbox.id)}${query({ discard: true })}`), "The sandbox and its changes are gone");
  location.hash = "#/sandboxes";
}

export function sandboxView(id, first = "overview") {
  const element = h("div", {});
  const content = h("div", { class: "tab-content", role: "tabpanel" });
  let sandbox = null;
  let tab = null;
  let name = first;
  let isGone = false;
  let links = [];

  const show = (wanted) => {
    const found = TABS.find((one) => one.name === wanted && (!one.needs || one.needs(sandbox))) ?? TABS[0];
    tab?.destroy?.();
    tab = found.make(sandbox);
    name = found.name;
    replace(content, tab.element);
    for (const link of links) {
      link.setAttribute("aria-selected", String(link.dataset.tab === name));
      link.tabIndex = link.dataset.tab === name ? 0 : -1;
      if (link.dataset.tab === name) link.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  };

  const draw = () => {
    const own = encodeURIComponent(sandbox.id);
    const offered = TABS.filter((one) => !one.needs || one.needs(sandbox));
    links = offered.map((one) => h("a", { class: "tab", role: "tab", href: `#/sandbox/${own}/${one.name}`, "data-tab": one.name }, one.label));
    const tabs = h("div", {
      class: "tabs", role: "tablist", "aria-label": "Sandbox",
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const at = links.indexOf(document.activeElement);
        if (!by || at < 0) return;
        event.preventDefault();
        const next = links[(at + by + links.length) % links.length];
        next.focus();
        next.click();
      },
    }, links);
    const isRunning = sandbox.isRunning;
    replace(element,
      h("header", { class: "view-head" },
        h("a", { class: "back", href: "#/sandboxes", "aria-label": "All sandboxes" }, "‹"),
        h("h1", { class: "clip" }, h("span", { class: `dot ${isRunning ? "on" : ""}`, "aria-hidden": "true" }), shown(sandbox.name ?? shortId(sandbox.id))),
        h("span", { class: `chip ${isRunning ? "live" : ""}` }, isRunning ? "running" : endOf(sandbox)),
        h("span", { class: "spring" }),
        isRunning && h("button", { class: "button", type: "button", onclick: (event) => extend(sandbox, event.currentTarget) }, "More time"),
        h("button", { class: "button deny", type: "button", onclick: (event) => endIt(sandbox, event.currentTarget) }, isRunning ? "End" : "Remove")),
      tabs, content);
    show(name);
  };

  const load = async () => {
    try {
      sandbox = await get(path("sandboxes", id));
    } catch (error) {
      const usage = live.usage.get(id);
      replace(element, h("header", { class: "view-head" }, h("a", { class: "back", href: "#/sandboxes", "aria-label": "All sandboxes" }, "‹"), h("h1", {}, usage ? "Run" : "Not there")),
        usage ? runElement(usage) : empty("This sandbox is not there", error.message));
      return;
    }
    if (!isGone) draw();
  };

  /** A run of `sandbox run`: it is looked at, and its events read. */
  const runElement = (usage) => {
    tab = eventsPanel({ sandbox: id, since: "" });
    return h("div", {}, h("dl", { class: "facts wide" }, fact("Command", code(usage.last.command)), fact("Memory", bytes(usage.last.memoryBytes)), fact("Id", code(id))), tab.element);
  };

  load();
  // It may end while somebody looks.
  const unsubscribe = subscribe(["sandboxes"], () => {
    const known = live.sandboxes?.find((one) => one.id === sandbox?.id);
    if (sandbox && known && known.isRunning !== sandbox.isRunning) load();
  });
  return {
    element,
    title: "Sandbox",
    navigate(place, [otherId, other = "overview"]) {
      if (place !== "sandbox" || otherId !== id || !sandbox) return false;
      if (other !== name) show(other);
      return true;
    },
    destroy() {
      isGone = true;
      tab?.destroy?.();
      unsubscribe();
    },
  };
}
