// What is going on, kept up to date: questions by a stream, sandboxes and what they use by asking every other second while somebody looks.

import { follow, get } from "./api.js";

const INTERVAL = 2000;
/** Measurements of each sandbox that are kept: three minutes. */
export const ROOM = 90;
const MAX_ANSWERED = 30;

export const live = {
  /** Open questions, by sandbox and number. */
  questions: new Map(),
  /** What was answered while the page was open, newest first. */
  answered: [],
  /** All sandboxes, newest first; null until they are known. */
  sandboxes: null,
  /** By id: the last measurement, and those before it. */
  usage: new Map(),
  isConnected: false,
};

const listeners = new Map();

/** Calls `listener` when one of these changes: questions, sandboxes, usage, connection. Returns what ends that. */
export function subscribe(names, listener) {
  for (const name of names) {
    if (!listeners.has(name)) listeners.set(name, new Set());
    listeners.get(name).add(listener);
  }
  return () => names.forEach((name) => listeners.get(name)?.delete(listener));
}

function tell(name) {
  for (const listener of [...(listeners.get(name) ?? [])]) listener();
}

export const keyOf = (question) => `${question.session}:${question.id}`;

/** The name of a sandbox, if it has one, or its id. */
export function nameOf(id) {
  const found = live.sandboxes?.find((sandbox) => sandbox.id === id);
  return found?.name ?? String(id).slice(-8);
}

function onQuestionEvent(name, event) {
  switch (name) {
    case "event.fs_request":
    case "event.host_request":
      live.questions.set(keyOf(event), { ...event, seen: live.questions.get(keyOf(event))?.seen ?? Date.now() });
      break;
    case "event.audit": {
      const question = live.questions.get(keyOf(event));
      live.questions.delete(keyOf(event));
      live.answered.unshift({ ...event, question });
      live.answered.length = Math.min(live.answered.length, MAX_ANSWERED);
      break;
    }
    case "event.withdrawn":
      live.questions.delete(keyOf(event));
      break;
    case "session.vanished":
      for (const [key, question] of live.questions) {
        if (question.session === event.session) live.questions.delete(key);
      }
      break;
    default:
      return;
  }
  tell("questions");
}

function connected(isConnected) {
  if (live.isConnected === isConnected) return;
  live.isConnected = isConnected;
  tell("connection");
}

export async function refreshSandboxes() {
  const all = [];
  let after;
  do {
    const page = await get(`/v1/sandboxes?all=true&limit=1000${after ? `&after=${encodeURIComponent(after)}` : ""}`);
    all.push(...page.sandboxes);
    after = page.next;
  } while (after && all.length < 5000);
  live.sandboxes = all.reverse();
  tell("sandboxes");
}

async function refreshUsage() {
  const { sandboxes } = await get("/v1/usage");
  const now = performance.now();
  const there = new Set();
  for (const measured of sandboxes) {
    there.add(measured.id);
    const before = live.usage.get(measured.id);
    const history = before ?? { cpu: [], memory: [], processes: [] };
    if (before) {
      const elapsed = now - before.at;
      history.cpu.push(Math.max(0, ((measured.cpuMs - before.last.cpuMs) / elapsed) * 100));
    }
    history.memory.push(measured.memoryBytes);
    history.processes.push(measured.processes);
    for (const values of [history.cpu, history.memory, history.processes]) {
      if (values.length > ROOM) values.splice(0, values.length - ROOM);
    }
    live.usage.set(measured.id, { ...history, last: measured, at: now });
  }
  for (const id of live.usage.keys()) {
    if (!there.has(id)) live.usage.delete(id);
  }
  tell("usage");
}

async function look() {
  if (document.hidden) return;
  try {
    await Promise.all([refreshSandboxes(), refreshUsage()]);
    connected(true);
  } catch {
    connected(false);
  }
}

let stop = null;

export function start() {
  if (stop) return;
  const unfollow = follow(() => "/v1/approvals/stream", {
    // A question wants an answer also while somebody looks at something else.
    whileHidden: true,
    onOpen: () => {
      live.questions.clear();
      tell("questions");
      connected(true);
    },
    onEvent: onQuestionEvent,
    onLost: () => connected(false),
  });
  look();
  const timer = setInterval(look, INTERVAL);
  document.addEventListener("visibilitychange", look);
  stop = () => {
    unfollow();
    clearInterval(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

export function end() {
  stop?.();
  stop = null;
  live.questions.clear();
  live.answered.length = 0;
  live.sandboxes = null;
  live.usage.clear();
}
