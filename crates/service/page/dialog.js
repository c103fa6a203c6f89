// Questions of the page itself, and what it says in passing.

import { h, shown } from "./dom.js";

/** Shows something over the page. `build(close)` makes its content; the promise has what `close` is given. */
export function open(title, build) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const heading = h("h2", { id: "dialog-title" }, title);
    const element = h("dialog", { "aria-labelledby": "dialog-title" });
    const close = (value) => {
      element.close();
      element.remove();
      before?.focus?.();
      resolve(value);
    };
    element.append(heading, ...[build(close)].flat());
    element.addEventListener("cancel", (event) => {
      event.preventDefault();
      close(undefined);
    });
    element.addEventListener("mousedown", (event) => {
      if (event.target === element) close(undefined);
    });
    document.body.append(element);
    element.showModal();
    element.querySelector("[autofocus]")?.focus();
  });
}

/** Whether somebody agrees. What cannot be undone says so, and is not what Enter does. */
export function confirm({ title, body = [], action, danger = false }) {
  return open(title, (close) => [
    h("div", { class: "dialog-body" }, body),
    h("div", { class: "dialog-actions" },
      h("button", { class: "button", type: "button", autofocus: danger, onclick: () => close(false) }, "Cancel"),
      h("button", { class: `button ${danger ? "danger" : "primary"}`, type: "button", autofocus: !danger, onclick: () => close(true) }, action)),
  ]).then(Boolean);
}

/** A dialog with fields. `fields` are elements with a name; the promise has their values, or nothing. */
export function ask({ title, fields, action }) {
  return open(title, (close) => h("form", {
    class: "fields",
    onsubmit: (event) => {
      event.preventDefault();
      const values = {};
      for (const input of event.target.elements) {
        if (input.name) values[input.name] = input.type === "checkbox" ? input.checked : input.value.trim();
      }
      close(values);
    },
  }, fields, h("div", { class: "dialog-actions" },
    h("button", { class: "button", type: "button", onclick: () => close(undefined) }, "Cancel"),
    h("button", { class: "button primary", type: "submit" }, action))));
}

export function field(label, input, hint) {
  return h("label", { class: "field" }, h("span", { class: "field-label" }, label), input, hint && h("span", { class: "hint" }, hint));
}

const SHOWN_FOR = 6000;
const MAX_TOASTS = 3;

/** Says what was done, or why it was not. */
export function toast(message, kind = "done") {
  const region = document.getElementById("toasts");
  const element = h("div", { class: `toast ${kind}` }, h("span", {}, shown(message, { limit: 400 })));
  element.append(h("button", { class: "toast-close", type: "button", "aria-label": "Dismiss", onclick: () => element.remove() }, "×"));
  region.append(element);
  while (region.children.length > MAX_TOASTS) region.firstElementChild.remove();
  setTimeout(() => element.remove(), SHOWN_FOR);
}

/** Does something for a button: once at a time, with what went wrong said. */
export async function act(button, work, done) {
  if (button?.disabled) return undefined;
  if (button) button.disabled = true;
  try {
    const result = await work();
    if (done) toast(typeof done === "function" ? done(result) : done);
    return result;
  } catch (error) {
    toast(error.message, "failed");
    return undefined;
  } finally {
    if (button) button.disabled = false;
  }
}
