/** A sandbox. */

import { Approvals } from "./approvals.js";
import { Palisade } from "./client.js";
import { Commands } from "./commands.js";
import { ConflictError } from "./errors.js";
import { Files } from "./files.js";
import type {
  Applied, ApplyRequest, ApplyResult, ChangeSet, Checkpoint, CheckpointList, Held, MoreTime, NewCheckpoint, NewFork, NewSandbox,
  RollbackRequest, RollbackResult, SandboxInfo, SandboxList,
} from "./models.js";

export interface CreateOptions extends Omit<NewSandbox, "timeToLiveSeconds" | "idleTimeToLiveSeconds"> {
  /** Ends it after so many milliseconds. */
  timeoutMs?: number;
  /** Ends it when no command has run for so many milliseconds. */
  idleTimeoutMs?: number;
  client?: Palisade;
}

export interface DiffOptions {
  /** Only what is below this path of the project. */
  path?: string;
  /** From this checkpoint on; 0 is the project without changes. */
  from?: number;
  to?: number;
}

/**
 * A sandbox. Make one with `create`, or find one with `connect`. It stays until `kill`, or until its time is over; with `await using` it is
 * ended at the end of the block, and changes that wait to be applied are kept.
 */
export class Sandbox {
  readonly id: string;
  readonly name: string | undefined;
  readonly commands: Commands;
  readonly files: Files;
  readonly approvals: Approvals;
  readonly #client: Palisade;
  readonly #path: string;

  /** `info` is as it was when it was made or found. */
  constructor(client: Palisade, readonly info: SandboxInfo) {
    this.#client = client;
    this.id = info.id;
    this.name = info.name ?? undefined;
    this.#path = `/v1/sandboxes/${encodeURIComponent(info.id)}`;
    this.commands = new Commands(client, info.id);
    this.files = new Files(client, info.id);
    this.approvals = new Approvals(client, info.id);
  }

  /** Makes a sandbox. With `transaction` the project stays as it is until `apply`. */
  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    const { client = new Palisade(), timeoutMs, idleTimeoutMs, ...rest } = options;
    const json: NewSandbox = { ...rest };
    if (timeoutMs !== undefined) {
      json.timeToLiveSeconds = Math.ceil(timeoutMs / 1000);
    }
    if (idleTimeoutMs !== undefined) {
      json.idleTimeToLiveSeconds = Math.ceil(idleTimeoutMs / 1000);
    }
    return new Sandbox(client, await client.json<SandboxInfo>("POST", "/v1/sandboxes", { json, once: true }));
  }

  /** The sandbox with this id or name. */
  static async connect(id: string, options: { client?: Palisade } = {}): Promise<Sandbox> {
    const client = options.client ?? new Palisade();
    return new Sandbox(client, await client.json<SandboxInfo>("GET", `/v1/sandboxes/${encodeURIComponent(id)}`));
  }

  /** The sandboxes that run, oldest first; with `all` also those that are over. */
  static async list(options: { all?: boolean; client?: Palisade } = {}): Promise<SandboxInfo[]> {
    const client = options.client ?? new Palisade();
    const found: SandboxInfo[] = [];
    let after: string | undefined;
    do {
      const query = { all: options.all ?? false, limit: 1000, after };
      const page: SandboxList = await client.json("GET", "/v1/sandboxes", { query });
      found.push(...page.sandboxes);
      after = page.next ?? undefined;
    } while (after !== undefined);
    return found;
  }

  /** The sandbox as it is now, with what it does. */
  getInfo(): Promise<SandboxInfo> {
    return this.#client.json("GET", this.#path);
  }

  async isRunning(): Promise<boolean> {
    return (await this.getInfo()).isRunning;
  }

  /** It ends so many milliseconds from now. */
  setTimeout(timeoutMs: number): Promise<SandboxInfo> {
    const json: MoreTime = { seconds: Math.ceil(timeoutMs / 1000) };
    return this.#client.json("POST", `${this.#path}/extend`, { json, repeatable: true });
  }

  /**
   * Ends and removes it. If changes wait, it is ended and kept, and ConflictError says so; `discard` removes them, too. `atOnce` asks no
   * command first.
   */
  async kill(options: { discard?: boolean; atOnce?: boolean } = {}): Promise<void> {
    const query = { kill: options.atOnce ?? false, discard: options.discard ?? false };
    await this.#client.request("DELETE", this.#path, { query });
  }

  /** What it changed in its project, or between two checkpoints. */
  diff(options: DiffOptions = {}): Promise<ChangeSet> {
    return this.#client.json("GET", `${this.#path}/diff`, { query: { ...options } });
  }

  /** The same as `git diff` shows it. */
  async patch(options: DiffOptions = {}): Promise<string> {
    const answer = await this.#client.request("GET", `${this.#path}/diff`, { query: { ...options, format: "patch" } });
    return answer.body.toString("utf8");
  }

  /** Applies what it changed to the project: all or nothing. ConflictError has in `held` what stands in the way. */
  async apply(paths: string[] = [], options: Omit<ApplyRequest, "paths" | "dryRun"> = {}): Promise<Applied> {
    return (await this.#apply({ paths, ...options, dryRun: false })) as Applied;
  }

  /** What would stand in the way of an apply; nothing is applied. */
  async previewApply(paths: string[] = [], options: Omit<ApplyRequest, "paths" | "dryRun"> = {}): Promise<Held> {
    try {
      return (await this.#apply({ paths, ...options, dryRun: true })) as Held;
    } catch (error) {
      if (error instanceof ConflictError && error.held !== undefined) {
        return error.held;
      }
      throw error;
    }
  }

  #apply(json: ApplyRequest): Promise<ApplyResult> {
    return this.#client.json("POST", `${this.#path}/apply`, { json });
  }

  /** Forgets what it changed. It has to be over; `kill({ discard: true })` does both. */
  async discard(): Promise<void> {
    await this.#client.request("POST", `${this.#path}/discard`);
  }

  /** Keeps the present state of its project. With `forReview` only the last four are kept: for who asks a person, and then applies it. */
  checkpoint(message?: string, options: { forReview?: boolean } = {}): Promise<Checkpoint> {
    const json: NewCheckpoint = { message: message ?? null, ...options };
    return this.#client.json("POST", `${this.#path}/checkpoints`, { json });
  }

  /** The kept states, oldest first. */
  async checkpoints(): Promise<Checkpoint[]> {
    return (await this.#client.json<CheckpointList>("GET", `${this.#path}/checkpoints`)).checkpoints;
  }

  /** Brings a kept state back; 0 is the project without changes. The present state is kept first. With `dryRun` it is what would change. */
  rollback(number: number, options: RollbackRequest = {}): Promise<RollbackResult> {
    return this.#client.json("POST", `${this.#path}/checkpoints/${number}/rollback`, { json: options });
  }

  /** A second sandbox from its state, or from a checkpoint. */
  async fork(options: NewFork = {}): Promise<Sandbox> {
    const made = await this.#client.json<SandboxInfo>("POST", `${this.#path}/fork`, { json: options, once: true });
    return new Sandbox(this.#client, made);
  }

  /** Ends it; changes that wait are kept. */
  async close(): Promise<void> {
    try {
      await this.kill();
    } catch (error) {
      // It has ended, and its changes wait.
      if (!(error instanceof ConflictError)) {
        throw error;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
