// For a browser that is not logged in.

import { logIn } from "./api.js";
import { h, icon, replace } from "./dom.js";

/** The code of the link that `sandbox serve` printed, taken out of the address so that it is in no history. */
export function takeCode() {
  const match = /^#code=([0-9a-f]+)$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, "", location.pathname);
  return match[1];
}

export function loginView(onDone, told = "") {
  const problem = h("p", { class: "problem", role: "alert" }, told);
  const token = h("input", { type: "password", name: "token", id: "token", autocomplete: "off", spellcheck: "false", required: true, autofocus: true });
  const button = h("button", { class: "button primary wide", type: "submit" }, "Log in");
  const form = h("form", {
    class: "login card",
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        await logIn({ token: token.value.trim() });
        token.value = "";
        onDone();
      } catch (error) {
        replace(problem, error.message);
        token.focus();
      } finally {
        button.disabled = false;
      }
    },
  },
  h("div", { class: "brand" }, h("span", { class: "brand-mark" }, icon("palisade")), "Palisade"),
  h("h1", {}, "Log in"),
  h("p", { class: "muted" }, "Open the link that ", h("code", {}, "sandbox serve"), " printed when it started, or paste the server's token:"),
  h("pre", { class: "example" }, h("code", {}, "cat ~/.local/state/palisade/service/token")),
  h("label", { class: "field" }, h("span", { class: "field-label" }, "Token"), token),
  problem,
  button);
  return { element: h("main", { class: "login-page", id: "main" }, form), title: "Log in" };
}
