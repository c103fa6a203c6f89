// Kept states of a sandbox's project, and the way back to them.

import { get, path, post, query } from "./api.js";
import { act, ask, confirm, field, open } from "./dialog.js";
import { code, empty, h, keyed, replace, shown } from "./dom.js";
import { ago, bytes, counted } from "./format.js";

const REASONS = { asked: "asked for", beforeCommand: "before a command", beforeRollback: "before a rollback", forReview: "for a question" };

async function showChanges(sandbox, number) {
  const diff = await act(null, () => get(`${path("sandboxes", sandbox.id, "diff")}${query({ from: number })}`));
  if (!diff) return;
  open(`Since checkpoint ${number}`, (close) => [
    h("div", { class: "dialog-body" }, diff.changes.length === 0
      ? h("p", {}, "Nothing has changed since.")
      : h("ul", { class: "plain names" }, diff.changes.slice(0, 300).map((change) => h("li", {}, h("span", { class: `mark ${change.kind}` }, change.kind), code(change.path))))),
    h("div", { class: "dialog-actions" }, h("button", { class: "button", type: "button", autofocus: true, onclick: () => close() }, "Close")),
  ]);
}

export function checkpointsTab(sandbox) {
  const list = h("ul", { class: "plain stack" });
  const nothing = empty("No checkpoint", "A checkpoint keeps the present state of the project, so that you can come back to it.", `sandbox checkpoint ${sandbox.name ?? sandbox.id} --message "before refactoring"`);
  const problem = h("p", { class: "problem" });

  const refresh = async () => {
    try {
      const { checkpoints } = await get(path("sandboxes", sandbox.id, "checkpoints"));
      const all = [...checkpoints].reverse();
      keyed(list, all, (one) => one.number, item);
      nothing.hidden = all.length > 0;
      replace(problem);
    } catch (error) {
      nothing.hidden = true;
      replace(problem, shown(error.message));
    }
  };

  const rollBack = async (button, checkpoint) => {
    const agreed = await confirm({
      title: `Roll back to checkpoint ${checkpoint.number}?`,
      body: [
        h("p", {}, "The project in the sandbox becomes as it was then. The present state is kept first, as a checkpoint of its own."),
        h("p", {}, "Commands that run are killed."),
      ],
      action: "Roll back",
      danger: true,
    });
    if (!agreed) return;
    await act(button, () => post(path("sandboxes", sandbox.id, "checkpoints", String(checkpoint.number), "rollback"), { kill: true }), `Rolled back to checkpoint ${checkpoint.number}`);
    refresh();
  };

  const item = (checkpoint) => ({
    element: h("li", { class: "card checkpoint", tabindex: "0", "data-item": true },
      h("div", { class: "checkpoint-number" }, String(checkpoint.number)),
      h("div", { class: "grow" },
        h("div", {}, checkpoint.message ? shown(checkpoint.message) : h("span", { class: "muted" }, REASONS[checkpoint.reason] ?? shown(checkpoint.reason))),
        h("div", { class: "muted" }, `${ago(checkpoint.createdAt)} · ${counted(checkpoint.entries, "entry", "entries")} · ${bytes(checkpoint.bytes)}`)),
      h("button", { class: "button small", type: "button", onclick: () => showChanges(sandbox, checkpoint.number) }, "Changes since"),
      sandbox.isRunning && h("button", { class: "button small", type: "button", onclick: (event) => rollBack(event.currentTarget, checkpoint) }, "Roll back")),
  });

  const make = async (event) => {
    const button = event.currentTarget;
    const values = await ask({ title: "New checkpoint", action: "Keep this state", fields: [field("What it is", h("input", { name: "message", maxlength: "200", autofocus: true, autocomplete: "off" }), "For you; may be empty")] });
    if (!values) return;
    await act(button, () => post(path("sandboxes", sandbox.id, "checkpoints"), { message: values.message || undefined }), (made) => `Checkpoint ${made.number} kept`);
    refresh();
  };

  refresh();
  return {
    element: h("div", {},
      h("div", { class: "bar" }, h("span", { class: "spring" }), sandbox.isRunning && h("button", { class: "button primary", type: "button", onclick: make }, "New checkpoint")),
      problem, nothing, list),
  };
}
