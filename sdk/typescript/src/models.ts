/** What the service sends and takes, as it is in docs/openapi.json: a type for each schema. A test compares them. */

export type AskPeople = "always" | "never";
export type AuditLevel = "INFO" | "WARN" | "ERROR" | "CRITICAL";
export type ChangeKind =
  | "added" | "modified" | "deleted" | "typeChanged" | "modeChanged" | "attributesChanged" | "touched" | "linked";
export type ChangeName = "created" | "written" | "removed" | "renamedFrom" | "renamedTo" | "attributes" | "overflow";
export type CheckpointReason = "asked" | "beforeCommand" | "beforeRollback" | "forReview";
export type CommandState = "running" | "exited" | "signalled" | "failed" | "lost";
export type ConflictReason = "changedOnHost" | "deletedOnHost" | "noBase" | "cannotMerge";
export type Decision = "allow" | "deny";
export type Encoding = "text" | "base64";
export type EntryKind = "file" | "directory" | "link" | "fifo" | "socket" | "device";
export type FileKind = "file" | "directory" | "link" | "other";
export type InputEncoding = "text" | "base64";
export type Lifetime = "once" | "session" | "always";
export type OnConflict = "refuse" | "force" | "ours" | "merge";
export type ProblemKind = "resource" | "security" | "validation" | "cancelled" | "timeout" | "initialisation";
export type Scope = "file" | "directory" | "directory-to-run" | "private-copy";
export type Store = "user" | "project" | "org";
export type Stream = "stdout" | "stderr";
export type ToolOrigin = "named" | "user" | "project";
export type ToolViolationKind =
  | "access" | "protectedWrite" | "execution" | "systemCall" | "network" | "limit" | "escape";
/** An argument, or several that are left out together. */
export type ToolWord = string | string[];
export type Transaction = "overlay" | "copy";

/** Bytes: text where they are UTF-8, base64 where they are not. `textOf` and `bytesOf` read them. */
export interface Written {
  data: string;
  encoding: Encoding;
}

export interface SandboxStatus {
  /** Since its last command ended. */
  idleMs?: number | null;
  runningCommands: number;
  /** Questions that wait for an answer. */
  questions: number;
  expiresInMs?: number | null;
  idleExpiresInMs?: number | null;
  isEnding: boolean;
}

/** A sandbox, as the service shows it (`Sandbox` in the document). */
export interface SandboxInfo {
  id: string;
  name?: string | null;
  state: string;
  isRunning: boolean;
  createdAt: string;
  endedAt?: string | null;
  project: string;
  presets: string[];
  level?: string | null;
  hasTransaction: boolean;
  timeToLiveSeconds?: number | null;
  idleTimeToLiveSeconds?: number | null;
  exitCode?: number | null;
  endReason?: string | null;
  status?: SandboxStatus | null;
}

export interface SandboxList {
  sandboxes: SandboxInfo[];
  next?: string | null;
}

export interface NewSandbox {
  name?: string | null;
  project?: string | null;
  presets?: string[];
  settings?: Record<string, unknown>;
  transaction?: Transaction | null;
  timeToLiveSeconds?: number | null;
  idleTimeToLiveSeconds?: number | null;
  ask?: AskPeople | null;
}

export interface NewFork {
  at?: number | null;
  name?: string | null;
}

export interface MoreTime {
  seconds: number;
}

export interface Size {
  rows: number;
  columns: number;
}

export interface NewCommand {
  argv: string[];
  environment?: Record<string, string>;
  cwd?: string | null;
  stdin?: string | null;
  keepStdinOpen?: boolean;
  separateStderr?: boolean;
  terminal?: Size | null;
  wait?: boolean;
  timeoutSeconds?: number | null;
  maxOutputBytes?: number | null;
}

export interface NewRun {
  command: NewCommand;
  sandbox?: NewSandbox;
}

export interface Command {
  number: number;
  state: CommandState;
  command: string;
  exitCode?: number | null;
  signal?: number | null;
  message?: string | null;
  startedAt?: string | null;
  endedAt?: string | null;
  runningMs?: number | null;
  isHeld: boolean;
  hasTerminal: boolean;
  outputBytes?: number | null;
}

export interface CommandList {
  commands: Command[];
}

export interface CommandResult {
  number: number;
  exitCode: number;
  signal?: number | null;
  timedOut: boolean;
  stdout: Written;
  stderr: Written;
  stdoutBytes: number;
  stderrBytes: number;
  durationMs: number;
}

export type OutputPart = Written & {
  cursor: number;
  next: number;
  stream: Stream;
};

export interface Input {
  data?: string;
  encoding?: InputEncoding;
  close?: boolean;
}

export interface SignalName {
  signal: string;
}

export interface FileDocument {
  path: Written;
  type: FileKind;
  size: number;
  mode: string;
  uid: number;
  gid: number;
  modified: number;
  target?: Written | null;
  etag: string;
}

export interface Entries {
  entries: FileDocument[];
}

export interface NewDirectory {
  path: string;
  makeParents?: boolean;
}

export interface Renaming {
  from: string;
  to: string;
  replace?: boolean;
}

export interface ChangeDocument {
  change: ChangeName;
  path: Written;
}

export interface FileTime {
  seconds: number;
  nanoseconds: number;
}

export interface Entry {
  kind: EntryKind;
  mode: number;
  size: number;
  modified: FileTime;
  target?: string | null;
}

export interface Change {
  path: string;
  pathHex?: string | null;
  kind: ChangeKind;
  old?: Entry | null;
  new?: Entry | null;
  hardLinkOf?: string | null;
}

export interface Rename {
  from: string;
  to: string;
  similarity: number;
}

export interface ChangeSet {
  changes: Change[];
  renames: Rename[];
  tooDeep?: string[];
}

export interface ApplyRequest {
  paths?: string[];
  onConflict?: OnConflict;
  checkpoint?: number | null;
  skipRefused?: boolean;
  dryRun?: boolean;
}

export interface Applied {
  applied: string[];
  refused: string[];
  kept: string[];
}

export interface Objection {
  rule: string;
  why: string;
}

export type RefusedReason =
  | { runLater: Objection }
  | "hidden" | "specialFile" | "linkLeavesProject" | "reservedName" | "pathTooLong" | "partOfItStays";

export interface Refused {
  path: string;
  reason: RefusedReason;
}

export interface Conflict {
  path: string;
  reason: ConflictReason;
}

/** What stands in the way of an apply. */
export interface Held {
  refused: Refused[];
  conflicts: Conflict[];
}

export type ApplyResult = Applied | Held;

export interface NewCheckpoint {
  message?: string | null;
  forReview?: boolean;
}

export interface Checkpoint {
  number: number;
  createdAt: string;
  reason: CheckpointReason;
  message?: string | null;
  entries: number;
  bytes: number;
  diskBytes: number;
  untilRestartOf?: string | null;
  isOnDisk: boolean;
}

export interface CheckpointList {
  checkpoints: Checkpoint[];
}

export interface RollbackRequest {
  dryRun?: boolean;
  kill?: boolean;
}

export interface RolledBack {
  checkpoint: number;
  keptAs: number;
}

export type RollbackResult = RolledBack | ChangeSet;

export interface AskingAncestor {
  pid: number;
  name: string;
}

export interface AskingProcess {
  pid: number;
  exe: string;
  args: string[];
  cwd: string;
  ancestors: AskingAncestor[];
}

export interface AskingSandbox {
  session: string;
  command: string;
  project: string;
}

/** A question of a sandbox. Names in it were chosen by the program that asks: escape them where you show them. */
export interface Question {
  id: number;
  session: string;
  address: string;
  reason: string;
  path?: string | null;
  pathBytes?: string | null;
  host?: string | null;
  port?: number | null;
  op?: string | null;
  access?: string | null;
  act?: string | null;
  isDirectory?: boolean | null;
  isSecret?: boolean | null;
  isNameOnly?: boolean | null;
  mayBeCopied?: boolean | null;
  entry?: string | null;
  newPath?: string | null;
  also?: string[];
  directory?: string | null;
  directoryBytes?: string | null;
  pid?: number | null;
  exe?: string | null;
  cwd?: string | null;
  processes: AskingProcess[];
  requests: number[];
  askedAt: string;
  expiresAt?: string | null;
}

export interface ApprovalList {
  sessions: AskingSandbox[];
  questions: Question[];
}

export interface ApprovalAnswer {
  decision: Decision;
  lifetime?: Lifetime | null;
  scope?: Scope;
  secret?: boolean;
  store?: Store | null;
}

export interface AuditRecord {
  eventId: string;
  sandboxId: string;
  timestamp: string;
  level: AuditLevel;
  state: string;
  event: string;
  details?: Record<string, unknown> | null;
  seq: number;
  prev: string;
  hash: string;
}

export interface AuditPage {
  records: AuditRecord[];
  next?: number | null;
}

export interface UsageLimit {
  /** As the option is called: `memory`, `pids` and so on. */
  name: string;
  /** Bytes, milliseconds, thousandths of a processor, or a count. */
  value: number;
}

/** What a sandbox or a run of `sandbox run` uses. Counters such as `cpuMs` only grow. */
export interface SandboxUsage {
  id: string;
  /** Otherwise it is a run of `sandbox run`. */
  isSession: boolean;
  /** The beginning of its command line, with secrets masked. */
  command: string;
  startedAt: string;
  cpuMs: number;
  memoryBytes: number;
  processes: number;
  threads: number;
  /** None where the kernel does not count it. */
  readBytes?: number | null;
  writtenBytes?: number | null;
  limits: UsageLimit[];
  /** None if the sandbox does not answer. */
  status?: SandboxStatus | null;
}

export interface UsageList {
  sandboxes: SandboxUsage[];
}

/** A recording of a terminal. */
export interface Recording {
  /** Of the sandbox or the run. */
  id: string;
  /** The number of the command; a run has only one. */
  command?: number | null;
  /** The name of the sandbox. */
  name?: string | null;
  /** The command, with secrets masked. */
  title?: string | null;
  columns: number;
  rows: number;
  startedAt?: string | null;
  bytes: number;
}

export interface RecordingList {
  recordings: Recording[];
}

/** What the command line of a tool has to be like. */
export interface ToolPatterns {
  maxLength: number;
  allowed: string[];
  blocked: string[];
}

/** A tool: what it is called, takes and runs. */
export interface DeclaredTool {
  name: string;
  description: string;
  command?: ToolWord[] | null;
  builtin?: string | null;
  stdin?: string | null;
  /** A JSON Schema. */
  input: Record<string, unknown>;
  patterns: ToolPatterns;
  origin: ToolOrigin;
  file: string;
  sha256: string;
  needsApproval?: string[] | null;
  policy?: Record<string, unknown> | null;
}

export interface IgnoredDeclaration {
  name: string;
  path: string;
  why: string;
}

export interface ToolList {
  tools: DeclaredTool[];
  ignored: IgnoredDeclaration[];
}

/** A declaration, with the words of the files: see docs/tools.md. */
export interface ToolDeclaration {
  version?: number | null;
  name: string;
  description: string;
  level?: string | null;
  command?: ToolWord[] | null;
  builtin?: string | null;
  stdin?: string | null;
  input?: Record<string, unknown> | null;
  limits?: Record<string, unknown> | null;
  patterns?: Record<string, unknown> | null;
  policy?: Record<string, unknown> | null;
}

export interface KeptDeclaration {
  file: string;
}

export interface NewToolCall {
  input?: Record<string, unknown>;
  project?: string | null;
}

/** One thing that a tool tried and was not allowed. Names in it come from inside. */
export interface ToolViolation {
  kind: ToolViolationKind;
  subject: string;
  access?: string | null;
  rule?: string | null;
  detail?: string | null;
  executable?: string | null;
  count: number;
}

/** What became of a tool's changes to the project. */
export interface ToolTransaction {
  waitingChanges: number;
  appliedChanges: number;
}

export interface ToolApproval {
  what: string;
  reason: string;
}

/** Why a tool was stopped, with its class. */
export interface ToolFailure {
  kind: ProblemKind;
  message: string;
  causes?: string[] | null;
}

/** The result of one call of a tool. */
export interface ToolResult {
  tool: string;
  /** The sandbox in which it ran. */
  sessionId: string;
  outcome: string;
  exitCode: number;
  signal?: number | null;
  stdout: string;
  stderr: string;
  truncated: boolean;
  data?: Record<string, unknown> | null;
  usage?: Record<string, unknown> | null;
  violations: ToolViolation[];
  transaction?: ToolTransaction | null;
  level?: string | null;
  network?: string | null;
  approvals: ToolApproval[];
  failure?: ToolFailure | null;
}

/** Why a request was not carried out (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  kind: ProblemKind;
  causes?: string[];
  exitCode?: number | null;
  held?: Held | null;
}

export function bytesOf(written: Written): Buffer {
  return Buffer.from(written.data, written.encoding === "base64" ? "base64" : "utf8");
}

export function textOf(written: Written): string {
  return written.encoding === "text" ? written.data : bytesOf(written).toString("utf8");
}

export function writtenOf(data: string | Uint8Array): Written {
  if (typeof data === "string") {
    return { data, encoding: "text" };
  }
  const bytes = Buffer.from(data);
  const text = bytes.toString("utf8");
  const isText = Buffer.from(text, "utf8").equals(bytes);
  return isText ? { data: text, encoding: "text" } : { data: bytes.toString("base64"), encoding: "base64" };
}
