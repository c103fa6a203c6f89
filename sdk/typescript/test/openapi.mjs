// Compares the types and methods of the client with docs/openapi.json (the first argument). Writes a file of TypeScript (the second argument)
// that compiles only if they are the same: each type is assigned to the one that the document describes, and back.

import { readFileSync, writeFileSync } from "node:fs";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const schemas = document.components.schemas;

/** Types with another name than their schema. */
const NAMES = { Sandbox: "SandboxInfo" };
/** Bytes of files; what only NO_METHOD sends. */
const NO_TYPE = ["FileContent", "LoggedIn", "LoginProof"];

/** The method for each operation. */
const METHODS = {
  healthz: "Palisade.healthz",
  readyz: "Palisade.readyz",
  read_metrics: "Palisade.metrics",
  read_document: "Palisade.document",
  read_audit: "Palisade.audit",
  follow_audit: "Palisade.followAudit",
  read_usage: "Palisade.usage",
  start_run: "Palisade.run",
  list_recordings: "Recordings.list",
  read_recording: "Recordings.read",
  list_tools: "Tools.list",
  declare_tool: "Tools.declare",
  get_tool: "Tools.get",
  remove_tool: "Tools.remove",
  run_tool: "Tools.run",
  list_approvals: "Approvals.list",
  follow_approvals: "Approvals.stream",
  decide_approval: "Approvals.decide",
  list_sandboxes: "Sandbox.static.list",
  create_sandbox: "Sandbox.static.create",
  get_sandbox: "Sandbox.getInfo",
  end_sandbox: "Sandbox.kill",
  extend_sandbox: "Sandbox.setTimeout",
  fork_sandbox: "Sandbox.fork",
  show_diff: "Sandbox.diff",
  apply_changes: "Sandbox.apply",
  discard_changes: "Sandbox.discard",
  list_checkpoints: "Sandbox.checkpoints",
  make_checkpoint: "Sandbox.checkpoint",
  roll_back: "Sandbox.rollback",
  list_commands: "Commands.list",
  start_command: "Commands.run",
  get_command: "CommandHandle.info",
  cancel_command: "CommandHandle.kill",
  read_output: "CommandHandle.output",
  write_stdin: "CommandHandle.sendStdin",
  signal_command: "CommandHandle.sendSignal",
  resize_terminal: "CommandHandle.resize",
  stat_file: "Files.stat",
  remove_file: "Files.remove",
  read_file: "Files.read",
  write_file: "Files.write",
  list_directory: "Files.list",
  make_directory: "Files.makeDir",
  rename_file: "Files.rename",
  watch_directory: "Files.watch",
};

/** Operations without a method, and why. */
const NO_METHOD = {
  log_in: "for browsers with the web page: a program has the socket or the token",
  log_out: "for browsers with the web page: a program has no cookie",
};

/** Parameters of a query, as the sources of the client have to name them. */
const SOURCES = ["client", "approvals", "sandbox", "commands", "files", "recordings", "tools"];

function typeOf(schema) {
  if (schema.$ref !== undefined) {
    return schema.$ref.split("/").at(-1);
  }
  if (schema.oneOf !== undefined) {
    return schema.oneOf.map(typeOf).join(" | ");
  }
  if (schema.allOf !== undefined) {
    return schema.allOf.map(typeOf).join(" & ");
  }
  if (schema.enum !== undefined) {
    return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  }
  const kinds = [schema.type].flat();
  return kinds.map((kind) => typeOfKind(kind, schema)).join(" | ");
}

function typeOfKind(kind, schema) {
  switch (kind) {
    case "array":
      return `(${typeOf(schema.items)})[]`;
    case "object": {
      if (schema.properties === undefined) {
        const values = schema.additionalProperties;
        return `Record<string, ${typeof values === "object" && values.type ? typeOf(values) : "unknown"}>`;
      }
      const isRequired = (name) => (schema.required ?? []).includes(name);
      const members = Object.entries(schema.properties).map(
        ([name, value]) => `${JSON.stringify(name)}${isRequired(name) ? "" : "?"}: ${typeOf(value)};`,
      );
      return `{ ${members.join(" ")} }`;
    }
    case "integer":
      return "number";
    case "string":
    case "number":
    case "boolean":
    case "null":
      return kind;
    default:
      throw new Error(`unknown type ${kind}`);
  }
}

const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
const names = operations.map((operation) => operation.operationId);
const missing = names.filter((name) => METHODS[name] === undefined && NO_METHOD[name] === undefined);
const gone = [...Object.keys(METHODS), ...Object.keys(NO_METHOD)].filter((name) => !names.includes(name));
if (missing.length > 0 || gone.length > 0) {
  console.error(`without a method: ${missing}; without an operation: ${gone}`);
  process.exit(1);
}
const sources = SOURCES.map((name) => readFileSync(new URL(`../src/${name}.ts`, import.meta.url), "utf8")).join("\n");
for (const operation of operations) {
  for (const { name, in: place } of operation.parameters ?? []) {
    if (place === "query" && !new RegExp(`\\b${name}\\b`).test(sources)) {
      console.error(`${operation.operationId}: nothing sends ${name}`);
      process.exit(1);
    }
  }
}

const lines = [
  `import type * as client from "./index.js";`,
  `import * as made from "./index.js";`,
  `type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;`,
  // Intersections and interfaces are compared member by member.
  `type Flat<T> = T extends string | number | boolean | null | undefined ? T : T extends (infer I)[] ? Flat<I>[] : { [K in keyof T]: Flat<T[K]> };`,
];
for (const [name, schema] of Object.entries(schemas)) {
  if (NO_TYPE.includes(name)) {
    continue;
  }
  lines.push(`type ${name} = ${typeOf(schema)};`);
  const ours = `client.${NAMES[name] ?? name}`;
  lines.push(`export const check${name}: Same<Flat<${name}>, Flat<${ours}>> = true;`);
}
for (const [operation, method] of Object.entries(METHODS)) {
  const [owner, ...path] = method.split(".");
  const place = path.length === 2 ? `made.${owner}.${path[1]}` : `made.${owner}.prototype.${path[0]}`;
  lines.push(`export const ${operation}: Function = ${place};`);
}
writeFileSync(process.argv[3], lines.join("\n") + "\n");
