// What a sandbox changed in its project: shown file by file, applied and discarded.

import { get, path, post, query, text } from "./api.js";
import { act, confirm, open, toast } from "./dialog.js";
import { code, empty, h, plain, replace, shown } from "./dom.js";
import { bytes, counted, splitPath } from "./format.js";
import { live } from "./live.js";

const MAX_LINES = 1500;
const MARKS = { added: "A", modified: "M", deleted: "D", renamed: "R", typeChanged: "T" };

const REFUSED = {
  hidden: "the sandbox could not see what the host has there",
  specialFile: "it is a device, a FIFO or a socket",
  linkLeavesProject: "the link leads out of the project",
  reservedName: "the name is reserved for the sandbox",
  pathTooLong: "its path is too long",
  partOfItStays: "something in the directory that it replaces was not applied",
};
const CONFLICTS = {
  changedOnHost: "it changed on the host, too",
  deletedOnHost: "it was deleted on the host",
  noBase: "both changed it, and there is no common version",
  cannotMerge: "both changed the same lines",
};

function reasonOf(reason, words) {
  if (typeof reason === "string") return words[reason] ?? reason;
  if (reason?.runLater) return `the host would run it later (${reason.runLater.rule}): ${reason.runLater.why}`;
  return JSON.stringify(reason);
}

/** The lines of a unified diff after its head, with the numbers of both sides. */
function patchLines(patch) {
  const lines = patch.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const rows = [];
  let [before, after] = [0, 0];
  let isInHunk = false;
  for (const line of lines) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      isInHunk = true;
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      rows.push({ kind: "hunk", text: line });
    } else if (!isInHunk) {
      if (/^(Binary files|old mode|new mode|new file mode|deleted file mode|similarity|rename )/.test(line)) rows.push({ kind: "meta", text: line });
    } else if (line.startsWith("+")) rows.push({ kind: "add", text: line.slice(1), after: after++ });
    else if (line.startsWith("-")) rows.push({ kind: "remove", text: line.slice(1), before: before++ });
    else if (line.startsWith("\\")) rows.push({ kind: "meta", text: line.slice(2) });
    else if (line.startsWith("diff ")) isInHunk = false;
    else rows.push({ kind: "same", text: line.slice(1), before: before++, after: after++ });
  }
  return rows;
}

function patchElement(patch) {
  const rows = patchLines(patch);
  if (rows.length === 0) return h("p", { class: "muted patch-note" }, "Nothing of its content changed.");
  const marks = { add: "+", remove: "−", same: "", hunk: "", meta: "" };
  const row = ({ kind, text: line, before, after }) => h("tr", { class: `patch-${kind}` },
    h("td", { class: "number", "data-number": before ?? "" }), h("td", { class: "number", "data-number": after ?? "" }),
    h("td", { class: "sign" }, marks[kind] ?? ""),
    h("td", { class: "content" }, shown(line, { keep: "\t", limit: 2000 })));
  const body = h("tbody", {}, rows.slice(0, MAX_LINES).map(row));
  const table = h("table", { class: "patch" }, body);
  if (rows.length <= MAX_LINES) return table;
  const more = h("button", { class: "button small", type: "button", onclick: () => { body.append(...rows.slice(MAX_LINES).map(row)); more.remove(); } }, `Show ${rows.length - MAX_LINES} more lines`);
  return [table, more];
}

/** A new directory says nothing that the files in it do not say. */
function visible(changes) {
  const parents = new Set(changes.flatMap(({ path: name }) => name.split("/").slice(0, -1).map((_, at, parts) => parts.slice(0, at + 1).join("/"))));
  return changes.filter((change) => !(change.kind === "added" && change.new?.kind === "directory" && parents.has(change.path)));
}

/** A name that is not UTF-8 cannot be said in a request. */
const canBeNamed = (name) => !name.includes("\ufffd");

export function changesTab(sandbox) {
  const base = path("sandboxes", sandbox.id);
  const list = h("div", { class: "files" });
  const summary = h("span", { class: "muted" });
  const problem = h("p", { class: "problem" });
  const applyAll = h("button", { class: "button primary", type: "button", onclick: (event) => apply(event.currentTarget, []) }, "Apply all");
  const discardAll = h("button", { class: "button deny", type: "button", onclick: (event) => discard(event.currentTarget) }, "Discard all");
  const reload = h("button", { class: "button", type: "button", onclick: (event) => act(event.currentTarget, refresh) }, "Look again");
  const bar = h("div", { class: "bar" }, summary, h("span", { class: "spring" }), reload, discardAll, applyAll);
  const nothing = empty("Nothing has changed", "What commands change in the project waits here until you apply or discard it. The project on the host stays as it is until then.", `sandbox exec ${sandbox.name ?? sandbox.id} -- sh -c 'echo hello > notes'`);
  let held = { refused: [], conflicts: [] };
  let count = 0;
  // The checkpoint that is shown; undefined: the changes as they are.
  let kept;

  async function refresh() {
    replace(problem);
    let diff;
    try {
      kept = await keep();
      diff = await get(`${base}/diff${query(range())}`);
    } catch (error) {
      // One that has ended and whose changes were applied or discarded has none any more.
      const isDone = error.status === 409 && !sandbox.isRunning;
      replace(list);
      replace(problem, isDone ? [] : shown(error.message));
      bar.hidden = true;
      nothing.hidden = !isDone;
      return;
    }
    held = await standing();
    const changes = visible(diff.changes);
    count = changes.length;
    nothing.hidden = count > 0;
    bar.hidden = count === 0;
    const refused = new Map(held.refused.map((one) => [one.path, reasonOf(one.reason, REFUSED)]));
    const conflicts = new Map(held.conflicts.map((one) => [one.path, reasonOf(one.reason, CONFLICTS)]));
    replace(summary, counted(count, "change"), refused.size ? ` · ${refused.size} refused` : "", conflicts.size ? ` · ${counted(conflicts.size, "conflict")}` : "");
    replace(list, changes.map((change) => file(change, refused.get(change.path), conflicts.get(change.path))));
  }

  const isRunning = () => live.sandboxes?.find((one) => one.id === sandbox.id)?.isRunning ?? sandbox.isRunning;

  /** Commands go on while a person looks: what is shown, and then applied, is a state that they cannot change. */
  async function keep() {
    if (!isRunning()) return undefined;
    try {
      return (await post(`${base}/checkpoints`, { forReview: true })).number;
    } catch {
      // A copy of the project has none that can be applied; whatever else it is, the comparison will say it.
      return undefined;
    }
  }

  const range = () => (kept === undefined ? {} : { from: 0, to: kept });

  /** What would stand in the way of an apply. */
  async function standing() {
    try {
      await post(`${base}/apply`, { dryRun: true, checkpoint: kept });
    } catch (error) {
      if (error.body?.held) return error.body.held;
    }
    return { refused: [], conflicts: [] };
  }

  function file(change, refused, conflict) {
    const shownRange = range();
    const [directory, name] = splitPath(change.path);
    const isNamed = canBeNamed(change.path);
    const content = h("div", { class: "file-content" });
    let isLoaded = false;
    const sizes = [change.old?.size, change.new?.size].filter((size) => size !== undefined).map(bytes).join(" → ");
    const button = h("button", {
      class: "button small", type: "button", disabled: !isNamed || Boolean(refused), "aria-label": `Apply ${plain(change.path, 80)}`,
      title: isNamed ? "" : "The name is not UTF-8: use sandbox apply",
      onclick: (event) => { event.preventDefault(); apply(event.currentTarget, [change.path]); },
    }, "Apply");
    const element = h("details", { class: "file" },
      h("summary", { "data-item": true },
        h("span", { class: `mark ${change.kind}`, title: change.kind, "aria-label": change.kind }, MARKS[change.kind] ?? "?"),
        h("span", { class: "file-name" }, code(directory, { class: "muted" }), code(name), change.new?.kind === "link" && [" → ", code(change.new.target)]),
        refused && h("span", { class: "chip bad" }, "refused"),
        conflict && h("span", { class: "chip warn" }, "conflict"),
        h("span", { class: "muted size" }, sizes),
        button,
        (refused || conflict) && h("span", { class: "file-note" }, shown(refused ?? conflict))),
      content);
    element.addEventListener("toggle", async () => {
      if (!element.open || isLoaded || !isNamed) return;
      isLoaded = true;
      replace(content, h("p", { class: "muted patch-note" }, "…"));
      try {
        replace(content, patchElement(await text(`${base}/diff${query({ format: "patch", path: change.path, ...shownRange })}`)));
      } catch (error) {
        isLoaded = false;
        replace(content, h("p", { class: "problem" }, shown(error.message)));
      }
    });
    return element;
  }

  async function apply(button, paths) {
    const isOne = paths.length === 1;
    const isMeant = (one) => !isOne || one.path === paths[0] || one.path.startsWith(`${paths[0]}/`);
    const conflicts = held.conflicts.filter(isMeant);
    const refused = held.refused.filter(isMeant);
    const wanted = { paths, onConflict: "refuse", skipRefused: refused.length > 0, checkpoint: kept };
    if (conflicts.length) {
      wanted.onConflict = await chooseForConflicts(conflicts);
      if (!wanted.onConflict) return;
    } else {
      const agreed = await confirm({
        title: isOne ? "Apply this change?" : `Apply ${counted(count - refused.length, "change")}?`,
        body: [
          h("p", {}, "The files of the project on the host are changed."),
          kept === undefined && isRunning() && h("p", {}, "Commands of the sandbox may have changed more since this was shown."),
          isOne && h("p", {}, code(paths[0])),
          refused.length > 0 && [h("p", {}, `Not applied, because they are refused:`), h("ul", { class: "plain names" }, refused.map((one) => h("li", {}, code(one.path), h("span", { class: "muted" }, shown(reasonOf(one.reason, REFUSED))))))],
        ],
        action: "Apply",
      });
      if (!agreed) return;
    }
    button.disabled = true;
    try {
      const done = await post(`${base}/apply`, wanted);
      toast(`Applied ${counted(done.applied.length, "change")}${done.refused.length ? `, ${done.refused.length} refused` : ""}`);
    } catch (error) {
      toast(error.message, "failed");
    }
    button.disabled = false;
    refresh();
  }

  function chooseForConflicts(conflicts) {
    const ways = [["force", "Take the sandbox's version"], ["ours", "Keep the host's version"], ["merge", "Merge both, where they fit together"]];
    return open("Files changed on the host, too", (close) => [
      h("div", { class: "dialog-body" }, h("ul", { class: "plain names" }, conflicts.slice(0, 50).map((one) => h("li", {}, code(one.path), h("span", { class: "muted" }, reasonOf(one.reason, CONFLICTS)))))),
      h("div", { class: "dialog-actions column" },
        ways.map(([way, label]) => h("button", { class: "button", type: "button", onclick: () => close(way) }, label)),
        h("button", { class: "button", type: "button", autofocus: true, onclick: () => close(undefined) }, "Cancel")),
    ]);
  }

  async function discard(button) {
    // While it runs, its project can only become another state; then the present one is kept.
    const runs = isRunning();
    const agreed = await confirm({
      title: `Discard ${counted(count, "change")}?`,
      body: runs
        ? [h("p", {}, "The project in the sandbox becomes as it was at the beginning. The present state is kept first, as a checkpoint. The project on the host stays as it is."), h("p", {}, "Commands that run are killed.")]
        : [h("p", {}, "Everything that this sandbox changed is removed, and cannot be brought back. The project on the host stays as it is.")],
      action: "Discard all",
      danger: true,
    });
    if (!agreed) return;
    const work = () => (runs ? post(`${base}/checkpoints/0/rollback`, { kill: true }) : post(`${base}/discard`));
    const done = await act(button, async () => { await work(); return true; }, "The changes were discarded");
    if (done && !runs) {
      // Nothing is left to be asked about.
      replace(list);
      bar.hidden = true;
      nothing.hidden = false;
    } else {
      refresh();
    }
  }

  refresh();
  return { element: h("div", {}, problem, bar, nothing, list) };
}
