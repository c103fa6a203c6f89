// Questions that wait, each with the answers that it offers.

import { path, post } from "./api.js";
import { confirm, toast } from "./dialog.js";
import { code, empty, h, icon, keyed, plain, replace, say, shown } from "./dom.js";
import { ago, clock, counted } from "./format.js";
import { keyOf, live, nameOf, subscribe } from "./live.js";

const ACTS = {
  see: "look at",
  read: "read",
  enter: "enter",
  execute: "run",
  write: "write to",
  create: "create",
  replace: "replace",
  rename: "rename",
  remove: "remove",
  change: "change the permissions of",
};

/** What has just appeared under somebody's hand is not answered by it. */
const SETTLING = 400;

const LIFETIMES = {
  once: { label: "Allow once", key: "a", hint: "For the calls that wait now" },
  session: { label: "For the session", key: "s", hint: "Until this sandbox ends" },
  always: { label: "Always", key: "", hint: "Also for later runs: written to your policy" },
};

/** What may be allowed beside the file itself. */
function scopesOf(question) {
  const scopes = [{ value: "file", label: question.host ? "This host and port" : question.isDirectory ? "This directory" : "This file" }];
  if (question.directory && question.directory !== question.path && !question.isSecret) {
    scopes.push({ value: "directory", label: "Its directory", path: question.directory });
    if (question.access === "execute") {
      scopes.push({ value: "directory-to-run", label: "Its directory, and run what is there", path: question.directory });
    }
  }
  if (question.mayBeCopied) scopes.push({ value: "private-copy", label: "A private copy, discarded at the end" });
  return scopes;
}

/** How long a yes of this kind may hold. The session has the last word. */
function lifetimesOf(question, scope) {
  if (scope === "private-copy") return ["session"];
  if (scope !== "file") return ["session", "always"];
  if (question.host) return ["once", "session", "always"];
  const mayBeOnce = question.act !== "rename";
  const mayLast = !(question.act === "remove"
    || (question.act === "change" && question.isDirectory)
    || ((question.act === "create" || question.act === "rename") && question.isNameOnly));
  const lasting = question.isSecret ? ["session"] : ["session", "always"];
  return [...(mayBeOnce ? ["once"] : []), ...(mayLast ? lasting : [])];
}

export function subjectOf(question) {
  if (question.host) return `${question.host}:${question.port}`;
  // The entry is a whole path, in the directory that would be granted.
  return question.entry ?? question.path;
}

async function answer(question, { decision, lifetime, scope = "file" }) {
  const subject = plain(subjectOf(question), 120);
  const isYes = decision === "allow";
  if (isYes && question.isSecret) {
    const agreed = await confirm({
      title: "Allow a secret?",
      body: [h("p", {}, "This is a key, a password store or the like. A command that reads it can keep it."), h("p", {}, code(subjectOf(question)))],
      action: "Allow the secret",
      danger: true,
    });
    if (!agreed) return false;
  } else if (isYes && lifetime === "always") {
    const agreed = await confirm({
      title: "Allow always?",
      body: [h("p", {}, "This is written to your policy and holds for later runs, too."), h("p", {}, code(scope.startsWith("directory") ? question.directory : subjectOf(question)))],
      action: "Allow always",
    });
    if (!agreed) return false;
  }
  const body = { decision, scope: isYes ? scope : undefined, lifetime, secret: isYes && question.isSecret ? true : undefined };
  try {
    await post(path("approvals", question.session, String(question.id)), body);
    toast(`${isYes ? "Allowed" : "Denied"}: ${subject}`);
    return true;
  } catch (error) {
    toast(error.message, "failed");
    return false;
  }
}

function processLine(question) {
  const process = question.processes?.[0];
  if (!process) return null;
  const ancestors = [...(process.ancestors ?? [])].reverse().slice(-3).map((one) => one.name);
  const own = process.args?.length ? process.args.join(" ") : process.exe;
  return h("div", { class: "question-process" },
    ancestors.length > 0 && h("span", { class: "ancestors" }, ancestors.map((name) => [code(name), h("span", { "aria-hidden": "true" }, " › ")])),
    code(own));
}

function card(first) {
  let question = first;
  let scope = "file";
  let isBusy = false;
  const scopes = scopesOf(first);

  const countdown = h("span", { class: "countdown" });
  const waiting = h("span", {});
  const sandboxLink = h("a", { href: `#/sandbox/${encodeURIComponent(first.session)}` });
  const process = h("div", {});
  const actions = h("div", { class: "question-actions" });

  const give = async (decision, lifetime) => {
    if (isBusy) return;
    isBusy = true;
    element.classList.add("busy");
    const wasTaken = await answer(question, { decision, lifetime, scope });
    isBusy = wasTaken;
    if (!wasTaken) element.classList.remove("busy");
  };

  const drawActions = () => {
    const offered = lifetimesOf(question, scope);
    const buttons = ["once", "session", "always"].map((lifetime) => {
      const { label, key, hint } = LIFETIMES[lifetime];
      const isOffered = offered.includes(lifetime);
      return h("button", {
        class: `button ${lifetime === offered[0] ? "primary" : ""}`,
        type: "button",
        title: isOffered ? hint : "Not offered for this question",
        disabled: !isOffered,
        onclick: () => give("allow", lifetime),
      }, lifetime !== "once" && lifetime === offered[0] ? `Allow ${label.toLowerCase()}` : label, key && h("kbd", { "aria-hidden": "true" }, key));
    });
    const deny = h("button", { class: "button deny", type: "button", title: "Until this sandbox ends", onclick: () => give("deny") }, "Deny", h("kbd", { "aria-hidden": "true" }, "d"));
    replace(actions, deny, h("span", { class: "spring" }), buttons);
  };

  const choices = scopes.length > 1 && h("fieldset", { class: "scopes" },
    h("legend", {}, "What is allowed"),
    scopes.map(({ value, label, path: directory }) => h("label", { class: "scope" },
      h("input", { type: "radio", name: `scope-${keyOf(first)}`, value, checked: value === "file", onchange: () => { scope = value; drawActions(); } }),
      h("span", {}, label, directory && [" ", code(directory)]))));

  const verb = first.host ? "connect to" : (ACTS[first.act] ?? first.act ?? "use");
  const sentence = `A command wants to ${verb}`;
  const title = h("h2", { class: "question-title" }, h("span", {}, sentence), code(subjectOf(first), { class: "subject" }),
    first.newPath && [h("span", {}, "as"), code(first.newPath, { class: "subject" })]);
  const element = h("article", {
    class: `card question ${first.isSecret ? "secret" : ""}`,
    tabindex: "0",
    "data-item": true,
    "aria-label": `${sentence} ${plain(subjectOf(first))}`,
  },
  h("header", { class: "question-head" },
    h("span", { class: "question-icon" }, icon(first.isSecret ? "key" : first.host ? "network" : "file")),
    title,
    countdown),
  first.isSecret && h("p", { class: "warning" }, "This is a secret: a key, a password store or the like."),
  process,
  h("dl", { class: "facts" },
    h("div", {}, h("dt", {}, "Sandbox"), h("dd", {}, sandboxLink)),
    h("div", {}, h("dt", {}, "Why it is asked"), h("dd", {}, shown(first.reason))),
    first.also?.length > 0 && h("div", {}, h("dt", {}, "Granted with it"), h("dd", {}, first.also.slice(0, 6).map((one) => [code(one), " "]))),
    h("div", {}, h("dt", {}, "Waiting"), h("dd", {}, waiting))),
  choices,
  actions);
  drawActions();

  const shortcuts = {
    a: () => { const [lifetime] = lifetimesOf(question, scope); if (lifetime) give("allow", lifetime); },
    s: () => lifetimesOf(question, scope).includes("session") && give("allow", "session"),
    d: () => give("deny"),
  };
  let arming = null;
  element.addEventListener("focusin", () => {
    if (arming === null) arming = setTimeout(() => { element.dataset.armed = ""; }, SETTLING);
  });
  element.addEventListener("focusout", (event) => {
    if (element.contains(event.relatedTarget)) return;
    clearTimeout(arming);
    arming = null;
    delete element.dataset.armed;
  });
  element.addEventListener("keydown", (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat;
    if (!isPlain || !shortcuts[event.key] || event.target.matches("input[type=text], textarea")) return;
    event.preventDefault();
    event.stopPropagation();
    if ("armed" in element.dataset) shortcuts[event.key]();
  });

  const tick = () => {
    const left = question.expiresAt ? new Date(question.expiresAt) - Date.now() : null;
    say(countdown, left === null ? "waits indefinitely" : `denied automatically in ${clock(left)}`);
    countdown.classList.toggle("urgent", left !== null && left < 30_000);
  };

  return {
    element,
    tick,
    update(newest) {
      question = newest;
      say(waiting, `${counted(question.requests?.length ?? 1, "call")}, asked ${ago(question.askedAt)}`);
      say(sandboxLink, plain(nameOf(question.session)));
      replace(process, processLine(question));
      tick();
    },
  };
}

function answeredRow(event) {
  const isYes = event.decision === "allow";
  const subject = event.host ? `${event.host}:${event.port}` : event.path;
  const by = { terminal: "in the terminal", socket: "here or elsewhere", timeout: "nobody answered in time", nobody: "nobody could be asked", on_ask: "by the policy" };
  return {
    element: h("li", { class: "answered" },
      h("span", { class: `chip ${isYes ? "good" : "bad"}` }, isYes ? "allowed" : "denied"),
      code(subject),
      h("span", { class: "muted" }, `${event.lifetime ?? ""} · ${by[event.source] ?? event.source} · ${nameOf(event.session)}`)),
  };
}

export function questionsView() {
  const list = h("div", { class: "stack", role: "list", "aria-label": "Questions" });
  const nothing = empty(
    "Nothing waits for you",
    "When a command wants something that its policy does not decide, it waits, and the question appears here. While this page is open, sandboxes wait for your answer instead of denying at once.",
    "sandbox run -- cat /opt/example/file",
  );
  const history = h("ul", { class: "plain" });
  const past = h("section", { class: "past" }, h("h2", { class: "section-title" }, "Answered"), history);
  const element = h("div", {}, h("header", { class: "view-head" }, h("h1", {}, "Questions")), nothing, list, past);
  const cards = new Set();
  let before = "";
  let settling = null;

  /** A click that was meant for another question must not answer the one that has moved there. */
  const settle = (questions) => {
    const now = questions.map(keyOf).join(" ");
    const isLonger = now.startsWith(before);
    before = now;
    if (isLonger) return;
    list.classList.add("settling");
    clearTimeout(settling);
    settling = setTimeout(() => list.classList.remove("settling"), SETTLING);
  };

  const draw = () => {
    const questions = [...live.questions.values()].sort((a, b) => a.seen - b.seen);
    settle(questions);
    const active = list.contains(document.activeElement) ? [...list.children].indexOf(document.activeElement.closest("[data-item]")) : -1;
    keyed(list, questions, keyOf, (question) => {
      const made = card(question);
      made.element.setAttribute("role", "listitem");
      cards.add(made);
      made.destroy = () => cards.delete(made);
      return made;
    });
    // Who answers one after the other with keys goes on with the next.
    if (active >= 0 && !list.contains(document.activeElement)) (list.children[active] ?? list.lastElementChild)?.focus();
    nothing.hidden = questions.length > 0;
    past.hidden = live.answered.length === 0;
    keyed(history, live.answered, (event) => `${event.session}:${event.id}:${event.ts}`, answeredRow);
  };
  const unsubscribe = subscribe(["questions", "sandboxes"], draw);
  const timer = setInterval(() => cards.forEach((one) => one.tick()), 1000);
  draw();
  return {
    element,
    title: "Questions",
    destroy() {
      unsubscribe();
      clearInterval(timer);
    },
  };
}
