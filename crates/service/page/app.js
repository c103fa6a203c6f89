// The frame around the views: navigation, keys, light and dark, and who is logged in.

import { get, logIn, logOut, whenLoggedOut } from "./api.js";
import { auditView } from "./audit.js";
import { act, open, toast } from "./dialog.js";
import { h, icon, replace, say } from "./dom.js";
import { end, live, start, subscribe } from "./live.js";
import { loginView, takeCode } from "./login.js";
import { questionsView } from "./questions.js";
import { recordingsView } from "./recordings.js";
import { sandboxView } from "./sandbox.js";
import { sandboxesView } from "./sandboxes.js";

const PLACES = [
  { name: "questions", label: "Questions", key: "1", icon: "question", view: questionsView },
  { name: "sandboxes", label: "Sandboxes", key: "2", icon: "sandbox", view: sandboxesView },
  { name: "recordings", label: "Recordings", key: "3", icon: "recording", view: recordingsView },
  { name: "audit", label: "Audit log", key: "4", icon: "audit", view: auditView },
];

const KEYS = [
  ["j  k", "next and previous item"],
  ["Enter", "open the item"],
  ["a", "allow the question that has the focus, once if that is offered"],
  ["s", "allow it for the session"],
  ["d", "deny it"],
  ["/", "search"],
  ["1 – 4", "questions, sandboxes, recordings, audit log"],
  ["t", "light or dark"],
  ["?", "this help"],
  ["Esc", "leave a field, close a dialog"],
];

const root = document.getElementById("app");
const main = h("main", { id: "main", tabindex: "-1" });
const badge = h("span", { class: "badge" });
const banner = h("div", { class: "banner", role: "status" });
let links = [];
let current = null;
let needsLogin = false;

function theme() {
  const chosen = document.documentElement.dataset.theme;
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const next = isDark ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("palisade-theme", next);
  } catch {
    // It holds for this page then.
  }
}

function help() {
  open("Keys", (close) => [
    h("dl", { class: "keys" }, KEYS.map(([keys, what]) => h("div", {}, h("dt", {}, keys.split("  ").map((key) => h("kbd", {}, key))), h("dd", {}, what)))),
    h("div", { class: "dialog-actions" }, h("button", { class: "button", type: "button", autofocus: true, onclick: () => close() }, "Close")),
  ]);
}

async function leave(event) {
  await act(event.currentTarget, logOut);
  logged(false);
}

function frame() {
  links = PLACES.map((place) => h("a", { href: `#/${place.name}`, class: "nav-link" }, icon(place.icon), h("span", {}, place.label), place.name === "questions" && badge));
  const tool = (name, label, onclick) => h("button", { class: "tool", type: "button", onclick, "aria-label": label, title: label }, icon(name), h("span", {}, label));
  return [
    h("div", { class: "side" },
      h("a", { class: "brand", href: "#/questions" }, h("span", { class: "brand-mark" }, icon("palisade")), "Palisade"),
      h("nav", { "aria-label": "Main" }, links),
      h("div", { class: "tools" }, tool("theme", "Light or dark", theme), tool("help", "Keys", help), needsLogin && tool("leave", "Log out", leave))),
    h("div", { class: "page" }, banner, main),
  ];
}

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const [place = "questions", ...rest] = parts;
  if (current?.navigate?.(place, rest)) return;
  current?.destroy?.();
  const found = PLACES.find(({ name }) => name === place);
  current = place === "sandbox" && rest[0] ? sandboxView(rest[0], rest[1]) : (found ?? PLACES[0]).view(...rest);
  replace(main, current.element);
  const active = place === "sandbox" ? "sandboxes" : (found ?? PLACES[0]).name;
  links.forEach((link, index) => {
    if (PLACES[index].name === active) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  scrollTo(0, 0);
  titled();
}

function titled() {
  const count = live.questions.size;
  document.title = `${count ? `(${count}) ` : ""}${current?.title ? `${current.title} · ` : ""}Palisade`;
  badge.hidden = count === 0;
  say(badge, String(count || ""));
  badge.setAttribute("aria-label", `${count} open`);
}

function items() {
  return [...main.querySelectorAll("[data-item]")].filter((item) => item.offsetParent !== null);
}

function step(by) {
  const all = items();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement?.closest("[data-item]"));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function search() {
  const box = main.querySelector("input[type=search]");
  if (box) {
    box.focus();
    box.select();
    return;
  }
  addEventListener("hashchange", () => main.querySelector("input[type=search]")?.focus(), { once: true });
  location.hash = "#/audit";
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input:not([type=radio], [type=checkbox], [type=range]), textarea, select, [data-typing]")) {
    if (event.key === "Escape" && !event.target.closest("[data-typing]")) event.target.blur();
    return;
  }
  const place = PLACES.find(({ key }) => key === event.key);
  const actions = { j: () => step(1), k: () => step(-1), "?": help, "/": search, t: theme };
  // A question wants to be seen before it is answered: the first key only shows which one is meant.
  const first = () => document.activeElement?.closest(".question") || main.querySelector(".question")?.focus();
  for (const key of ["a", "s", "d"]) actions[key] = first;
  const action = place ? () => { location.hash = `#/${place.name}`; } : actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function logged(isIn, told) {
  removeEventListener("hashchange", route);
  current?.destroy?.();
  current = null;
  if (isIn) {
    replace(root, frame());
    start();
    addEventListener("hashchange", route);
    route();
    return;
  }
  end();
  needsLogin = true;
  const view = loginView(() => logged(true), told);
  replace(root, view.element);
  document.title = `${view.title} · Palisade`;
  root.querySelector("[autofocus]")?.focus();
}

async function begin() {
  let told = "";
  const code = takeCode();
  if (code) {
    try {
      await logIn({ code });
      needsLogin = true;
    } catch (error) {
      told = error.message;
    }
  }
  try {
    await get("/v1/sandboxes?limit=1");
  } catch (error) {
    if (error.status === 401 || error.status === 403) {
      logged(false, told);
      return;
    }
    toast(error.message, "failed");
  }
  if (!needsLogin) {
    try {
      needsLogin = localStorage.getItem("palisade-key") !== null;
    } catch {
      needsLogin = false;
    }
  }
  logged(true);
}

subscribe(["questions"], titled);
subscribe(["connection"], () => {
  banner.classList.toggle("on", !live.isConnected);
  say(banner, live.isConnected ? "" : "The server cannot be reached. Trying again.");
});
whenLoggedOut(() => {
  if (current) logged(false, "The login is over.");
});
addEventListener("keydown", onKey);
// A link that is opened where the page is open already does not load it again.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#code=")) begin();
});
begin();
