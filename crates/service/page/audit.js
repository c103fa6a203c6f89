// The audit log: searched, and followed as it is written.

import { follow, get, query } from "./api.js";
import { empty, h, plain, replace, say, shown } from "./dom.js";
import { bytes, counted, duration, timeOfDay } from "./format.js";
import { live, nameOf } from "./live.js";

const MAX_PAGES = 10;
const MAX_ROWS = 500;
const AGES = [["10m", "10 minutes"], ["1h", "hour"], ["24h", "day"], ["168h", "week"], ["", "everything"]];
const LEVELS = [["", "All levels"], ["warn", "Warnings and above"], ["error", "Errors and above"], ["critical", "Critical"]];

const GROUPS = [
  { name: "All", events: null },
  { name: "Network", events: ["NETWORK_ATTEMPT", "CONNECTION_CLOSED", "NAME_QUERIED", "HOST_DECIDED"] },
  { name: "Files", events: ["FILE_OPERATION", "ACCESS_DECIDED", "ACCESS_REVOKED", "CHANGES_APPLIED", "CHANGES_HELD", "CHANGES_DISCARDED", "CHECKPOINT_MADE", "ROLLED_BACK"] },
  { name: "Commands", events: ["SESSION_EXEC", "SESSION_EXEC_ENDED", "SANDBOX_EXECUTED", "SANDBOX_EXITED", "SIGNAL_FORWARDED"] },
  { name: "Denied", events: ["POLICY_VIOLATION", "SYSCALL_BLOCKED", "ESCAPE_ATTEMPT", "RESOURCE_LIMIT_EXCEEDED"] },
];

/** What a record says, in one line. */
function summary({ event, details = {} }) {
  const d = details;
  switch (event) {
    case "SESSION_EXEC": return `#${d.command} ${d.commandPreview}`;
    case "SESSION_EXEC_ENDED": return `#${d.command} ${d.signal ? `signal ${d.signal}` : `exit ${d.exitCode}`} after ${duration(d.durationMs)}`;
    case "SANDBOX_CREATED": return `${d.sandboxLevel ?? ""} ${d.workingDirectory ?? ""}`;
    case "NETWORK_ATTEMPT": return `${d.action} ${d.host}:${d.port} by ${d.via}${d.rule ? ` (${d.rule})` : ""}`;
    case "CONNECTION_CLOSED": return `${d.host}:${d.port} ${bytes(d.sent)} sent, ${bytes(d.received)} received`;
    case "NAME_QUERIED": return `${d.name} ${d.record} ${d.answer}`;
    case "HOST_DECIDED": return `${d.decision} ${d.host}:${d.port} ${d.lifetime} by ${d.source}`;
    case "ACCESS_DECIDED": return `${d.decision} ${d.access} ${d.path} ${d.lifetime} by ${d.source}`;
    case "FILE_OPERATION": return `${d.op} ${d.path}`;
    case "POLICY_VIOLATION": return `${d.op} ${d.path ?? ""} ${d.rule ?? ""}`;
    case "SYSCALL_BLOCKED": return `${d.name}`;
    case "ESCAPE_ATTEMPT": return `${d.description}`;
    case "CHANGES_APPLIED": return `${counted(d.paths, "path")}, ${d.refused} refused, ${d.kept} kept`;
    case "CHANGES_HELD": return `${d.refused} refused, ${counted(d.conflicts, "conflict")}`;
    default:
      return Object.entries(d).filter(([, value]) => typeof value !== "object").slice(0, 4).map(([key, value]) => `${key} ${value}`).join(" · ");
  }
}

const WORDS = { SESSION_EXEC: "command started", SESSION_EXEC_ENDED: "command ended" };
const wordOf = (event) => WORDS[event] ?? event.toLowerCase().replaceAll("_", " ");

function recordRow(record) {
  const level = String(record.level ?? "").toLowerCase();
  const element = h("details", { class: `record ${level}` },
    h("summary", { "data-item": true },
      h("time", { class: "muted tabular", datetime: record.timestamp }, timeOfDay(record.timestamp)),
      h("span", { class: "record-event" }, h("span", { class: `level ${level}`, role: "img", "aria-label": level }), h("span", { class: "clip" }, wordOf(record.event))),
      h("span", { class: "record-text clip literal" }, shown(summary(record), { limit: 300 })),
      h("span", { class: "record-sandbox muted clip" }, shown(nameOf(record.sandboxId)))));
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) {
      const text = JSON.stringify(record, null, 2);
      element.append(h("pre", { class: "record-json" }, shown(text, { keep: "\n", limit: 20_000 })));
    }
  });
  return element;
}

/** A list of records with its filters. With a sandbox, only those of it. */
export function eventsPanel({ sandbox, since = "1h" } = {}) {
  const rows = h("div", { class: "records" });
  const status = h("span", { class: "muted", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search in the log", autocomplete: "off", spellcheck: "false", oninput: () => draw() });
  const age = h("select", { "aria-label": "Time", onchange: () => load() }, AGES.map(([value, label]) => h("option", { value, selected: value === since }, value ? `Last ${label}` : "Everything")));
  const level = h("select", { "aria-label": "Level", onchange: () => load() }, LEVELS.map(([value, label]) => h("option", { value }, label)));
  const which = !sandbox && h("select", { "aria-label": "Sandbox", onchange: () => load() }, h("option", { value: "" }, "All sandboxes"), (live.sandboxes ?? []).slice(0, 200).map(({ id }) => h("option", { value: id }, plain(nameOf(id), 40))));
  let group = GROUPS[0];
  const groups = h("div", { class: "segments", role: "group", "aria-label": "Kind of event" }, GROUPS.map((one) => h("button", {
    type: "button", class: "segment", "aria-pressed": String(one === group),
    onclick: (event) => {
      group = one;
      for (const button of groups.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      draw();
    },
  }, one.name)));
  const nothing = empty("No such events", "Everything that sandboxes do, and every decision about them, is recorded. Take another time, kind or word.", "sandbox audit --since 10m");
  nothing.hidden = true;
  let records = [];
  let stop = null;
  let isDue = false;
  let generation = 0;

  const isWanted = (record) => {
    if (group.events && !group.events.includes(record.event)) return false;
    const words = search.value.trim().toLowerCase();
    return !words || JSON.stringify(record).toLowerCase().includes(words) || wordOf(record.event).includes(words) || nameOf(record.sandboxId).toLowerCase().includes(words);
  };

  function draw() {
    const found = records.filter(isWanted);
    const shownRows = found.slice(-MAX_ROWS).reverse();
    const known = rows.known ?? new Map();
    const next = new Map(shownRows.map((record) => [record.seq, known.get(record.seq) ?? recordRow(record)]));
    rows.known = next;
    // Only what is new is put in, so that what somebody reads stays open.
    let at = rows.firstElementChild;
    for (const element of next.values()) {
      if (element === at) at = at.nextElementSibling;
      else rows.insertBefore(element, at);
    }
    while (at) {
      const after = at.nextElementSibling;
      at.remove();
      at = after;
    }
    say(status, `${counted(found.length, "event")}${found.length > MAX_ROWS ? `, the last ${MAX_ROWS} shown` : ""}`);
    nothing.hidden = found.length > 0;
  }

  function later() {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      draw();
    }, 250);
  }

  async function load() {
    const own = ++generation;
    stop?.();
    const wanted = { sandbox: sandbox ?? which.value, level: level.value };
    const found = [];
    try {
      let from = age.value;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const answer = await get(`/v1/audit${query({ ...wanted, since: from, limit: 1000 })}`);
        if (own !== generation) return;
        found.push(...answer.records);
        if (answer.next === undefined) break;
        from = String(answer.next);
      }
    } catch (error) {
      if (own === generation) replace(status, shown(error.message));
      return;
    }
    records = found;
    draw();
    const one = wanted.sandbox && live.sandboxes?.find(({ id }) => id === wanted.sandbox);
    // Of one that is over nothing more comes.
    if (one && !one.isRunning) return;
    const seen = new Set(records.map((record) => record.seq));
    const last = records.at(-1)?.seq ?? 0;
    stop = follow((id) => `/v1/audit/stream${query({ ...wanted, since: id ?? (last || "1s") })}`, {
      onEvent(name, record) {
        if (name === "problem" || record.seq === undefined || seen.has(record.seq)) return;
        seen.add(record.seq);
        records.push(record);
        if (records.length > MAX_PAGES * 1000) records.shift();
        later();
      },
    });
  }

  load();
  return {
    element: h("div", { class: "events" },
      h("div", { class: "filters" }, search, age, level, which),
      h("div", { class: "bar" }, groups, h("span", { class: "spring" }), status),
      nothing, rows),
    destroy() {
      generation += 1;
      stop?.();
    },
  };
}

export function auditView() {
  const panel = eventsPanel({ since: "1h" });
  return {
    element: h("div", {}, h("header", { class: "view-head" }, h("h1", {}, "Audit log")), panel.element),
    title: "Audit log",
    destroy: panel.destroy,
  };
}

