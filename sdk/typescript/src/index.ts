/** Sandboxes of Palisade (`sandbox serve`) from TypeScript and JavaScript. */

export type { Connection } from "./address.js";
export type { ApprovalEvent } from "./approvals.js";
export { Approvals } from "./approvals.js";
export type { Answer, AuditFilter, RequestOptions } from "./client.js";
export { Palisade } from "./client.js";
export type { BackgroundOptions, CommandOptions, ForegroundOptions, WaitOptions } from "./commands.js";
export { CommandHandle, Commands } from "./commands.js";
export * from "./errors.js";
export type { WriteOptions } from "./files.js";
export { Files } from "./files.js";
export * from "./models.js";
export { Recordings } from "./recordings.js";
export { Tools } from "./tools.js";
export type { CreateOptions, DiffOptions } from "./sandbox.js";
export { Sandbox } from "./sandbox.js";
