/** Commands of a sandbox. */

import type { Palisade } from "./client.js";
import { CommandFailed, CommandTimeout, ConnectionFailed, ProblemError, errorOf } from "./errors.js";
import type { Command, CommandList, CommandResult, Input, NewCommand, OutputPart, Problem, Size } from "./models.js";
import { bytesOf, textOf, writtenOf } from "./models.js";

export interface CommandOptions {
  cwd?: string;
  envs?: Record<string, string>;
  /** What it reads. */
  stdin?: string;
}

export interface ForegroundOptions extends CommandOptions {
  background?: false;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
  /** Ends it after so many milliseconds, with CommandTimeout. */
  timeoutMs?: number;
  maxOutputBytes?: number;
  /** CommandFailed for another exit code than 0. */
  check?: boolean;
}

export interface BackgroundOptions extends CommandOptions {
  background: true;
  /** It can be sent more with `sendStdin`, until `closeStdin`. */
  keepStdinOpen?: boolean;
  terminal?: Size;
}

export interface WaitOptions {
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
  timeoutMs?: number;
  check?: boolean;
}

/** A command in the background. It outlives this program and the server. */
export class CommandHandle {
  readonly #client: Palisade;
  readonly #path: string;
  #end: Command | undefined;

  constructor(client: Palisade, sandbox: string, readonly number: number) {
    this.#client = client;
    this.#path = `/v1/sandboxes/${encodeURIComponent(sandbox)}/commands/${number}`;
  }

  /** The command as it is now. */
  info(): Promise<Command> {
    return this.#client.json("GET", this.#path);
  }

  /**
   * What it wrote and writes, from a byte on, until it has ended. If the server is ended meanwhile, this goes on at the next one from the
   * byte after the last.
   */
  async *output(
    options: { since?: number; follow?: boolean; signal?: AbortSignal } = {},
  ): AsyncGenerator<OutputPart, void, undefined> {
    let since = options.since ?? 0;
    let follow = options.follow ?? true;
    const signal = options.signal === undefined ? {} : { signal: options.signal };
    for (;;) {
      const query = { since, follow };
      for await (const event of this.#client.events(`${this.#path}/output`, { query, reconnect: true, ...signal })) {
        if (event.name === "output") {
          const part = event.data as OutputPart;
          since = part.next;
          yield part;
        } else if (event.name === "dropped") {
          since = (event.data as { to: number }).to;
        } else if (event.name === "end") {
          this.#end = event.data as Command;
          return;
        } else if (event.name === "problem") {
          throw errorOf(500, event.data as Problem);
        }
      }
      if (!follow || options.signal?.aborted === true) {
        return;
      }
      // The server was ended in order, and the command goes on.
      follow = (await this.info()).state === "running";
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<OutputPart, void, undefined> {
    return this.output();
  }

  /** Waits for its end, and says what it wrote. CommandTimeout after `timeoutMs`; the command goes on then. */
  async wait(options: WaitOptions = {}): Promise<CommandResult> {
    const began = Date.now();
    const written: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
    const told = { stdout: options.onStdout, stderr: options.onStderr };
    const signal = options.timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(options.timeoutMs) };
    for await (const part of this.output(signal)) {
      written[part.stream].push(bytesOf(part));
      told[part.stream]?.(textOf(part));
    }
    const end = this.#end ?? (await this.info());
    if (end.state === "running") {
      throw new CommandTimeout(`the command has not ended after ${options.timeoutMs} ms`);
    }
    const [stdout, stderr] = [Buffer.concat(written.stdout), Buffer.concat(written.stderr)];
    const result: CommandResult = {
      number: this.number,
      exitCode: end.exitCode ?? -1,
      timedOut: false,
      stdout: writtenOf(stdout),
      stderr: writtenOf(stderr),
      stdoutBytes: stdout.length,
      stderrBytes: stderr.length,
      durationMs: Date.now() - began,
      ...(end.signal === undefined ? {} : { signal: end.signal }),
    };
    if (options.check === true && result.exitCode !== 0) {
      throw new CommandFailed(result);
    }
    return result;
  }

  /** Sends it what it reads, 64 KiB at most. */
  async sendStdin(data: string | Uint8Array): Promise<void> {
    const input: Input = writtenOf(data);
    await this.#client.request("POST", `${this.#path}/stdin`, { json: input });
  }

  /** Nothing more comes: its input ends. */
  async closeStdin(): Promise<void> {
    const input: Input = { close: true };
    await this.#client.request("POST", `${this.#path}/stdin`, { json: input });
  }

  /** Sends its process group a signal, such as `INT`. */
  async sendSignal(signal: string | number): Promise<void> {
    await this.#client.request("POST", `${this.#path}/signal`, { json: { signal: String(signal) } });
  }

  /** Changes the size of its terminal. */
  async resize(rows: number, columns: number): Promise<void> {
    const size: Size = { rows, columns };
    await this.#client.request("POST", `${this.#path}/resize`, { json: size });
  }

  /** Ends it: SIGTERM, and SIGKILL after two seconds. `atOnce` begins with SIGKILL. */
  async kill(options: { atOnce?: boolean } = {}): Promise<void> {
    await this.#client.request("DELETE", this.#path, { query: { kill: options.atOnce ?? false }, repeatable: true });
  }
}

/** `sandbox.commands`. */
export class Commands {
  readonly #client: Palisade;
  readonly #sandbox: string;
  readonly #path: string;

  constructor(client: Palisade, sandbox: string) {
    this.#client = client;
    this.#sandbox = sandbox;
    this.#path = `/v1/sandboxes/${encodeURIComponent(sandbox)}/commands`;
  }

  /**
   * Runs a command: a text is for the shell, a list is the program and its arguments. The result has its exit code and both outputs; with
   * `background` it is a handle, at once. With `onStdout` or `onStderr` you get the output as it comes; the command then goes on if this
   * program ends.
   */
  run(cmd: string | readonly string[], options: BackgroundOptions): Promise<CommandHandle>;
  run(cmd: string | readonly string[], options?: ForegroundOptions): Promise<CommandResult>;
  async run(
    cmd: string | readonly string[],
    options: ForegroundOptions | BackgroundOptions = {},
  ): Promise<CommandResult | CommandHandle> {
    const body: NewCommand = { argv: typeof cmd === "string" ? ["/bin/sh", "-c", cmd] : [...cmd] };
    if (options.cwd !== undefined) {
      body.cwd = options.cwd;
    }
    if (options.envs !== undefined) {
      body.environment = options.envs;
    }
    if (options.stdin !== undefined) {
      body.stdin = options.stdin;
    }
    if (options.background === true) {
      body.keepStdinOpen = options.keepStdinOpen ?? false;
      body.terminal = options.terminal ?? null;
      return this.#start(body);
    }
    if (options.onStdout !== undefined || options.onStderr !== undefined) {
      const handle = await this.#start(body);
      try {
        return await handle.wait(options);
      } catch (error) {
        if (!(error instanceof CommandFailed)) {
          await handle.kill().catch((second: unknown) => {
            // The first error is the one to tell.
            if (!(second instanceof ConnectionFailed || second instanceof ProblemError)) {
              throw second;
            }
          });
        }
        throw error;
      }
    }
    body.wait = true;
    if (options.timeoutMs !== undefined) {
      body.timeoutSeconds = Math.max(1, Math.ceil(options.timeoutMs / 1000));
    }
    if (options.maxOutputBytes !== undefined) {
      body.maxOutputBytes = options.maxOutputBytes;
    }
    // It belongs to the connection: if that is lost the command is ended, and must not be started a second time.
    const result = await this.#client.json<CommandResult>("POST", this.#path, {
      json: body,
      once: true,
      repeatable: false,
    });
    if (result.timedOut) {
      throw new CommandTimeout(`the command was ended after ${options.timeoutMs} ms`, result);
    }
    if (options.check === true && result.exitCode !== 0) {
      throw new CommandFailed(result);
    }
    return result;
  }

  async #start(body: NewCommand): Promise<CommandHandle> {
    const json: NewCommand = { ...body, separateStderr: !body.terminal };
    const started = await this.#client.json<Command>("POST", this.#path, { json, once: true });
    return new CommandHandle(this.#client, this.#sandbox, started.number);
  }

  /** The commands that run, and the last ones of the background. */
  async list(): Promise<Command[]> {
    return (await this.#client.json<CommandList>("GET", this.#path)).commands;
  }

  /** The command with this number, started by whomever. */
  async connect(number: number): Promise<CommandHandle> {
    const handle = new CommandHandle(this.#client, this.#sandbox, number);
    await handle.info();
    return handle;
  }

  /** Ends the command with this number. */
  async kill(number: number, options: { atOnce?: boolean } = {}): Promise<void> {
    await new CommandHandle(this.#client, this.#sandbox, number).kill(options);
  }
}
