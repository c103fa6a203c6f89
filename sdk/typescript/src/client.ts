/** A connection to the service, and what is not about one sandbox. */

import { randomUUID } from "node:crypto";
import * as http from "node:http";
import * as https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address, Connection } from "./address.js";
import { findAddress } from "./address.js";
import { Approvals } from "./approvals.js";
import { ConnectionFailed, InProgress, ProblemError, errorOf } from "./errors.js";
import type { ServerEvent } from "./events.js";
import { EventParser } from "./events.js";
import type {
  AuditLevel,
  AuditPage,
  AuditRecord,
  CommandResult,
  NewCommand,
  NewRun,
  NewSandbox,
  Problem,
  SandboxUsage,
  UsageList,
} from "./models.js";
import { Recordings } from "./recordings.js";
import { Tools } from "./tools.js";

/** Milliseconds before each repetition of a request. */
const RETRIES = [100, 300, 900];
/** How long a stream that was cut off is tried again before it is given up. */
const RECONNECT_MS = 30_000;
/** How long a request that is carried out for an earlier attempt is waited for. */
const IN_PROGRESS_MS = 120_000;
/** The service says at least every 15 seconds that it is there. */
const SILENCE_MS = 60_000;

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface RequestOptions {
  query?: Query;
  json?: unknown;
  content?: Uint8Array;
  headers?: Record<string, string>;
  /** Gives it an `Idempotency-Key`, so that it is carried out once however often it arrives. */
  once?: boolean;
  /** Whether it may be sent again if nobody knows whether it arrived. */
  repeatable?: boolean;
}

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

export interface AuditFilter {
  sandbox?: string;
  /** A time, an age such as `10m`, or the number of a record. */
  since?: string;
  event?: string;
  level?: AuditLevel;
}

/** A failure to reach the service, or to hear from it. */
class Lost extends Error {
  constructor(readonly hasArrived: boolean, override readonly cause: Error) {
    super(cause.message);
  }
}

/** A connection to `sandbox serve`: to the UNIX socket of this user, or as `PALISADE_URL` and `PALISADE_TOKEN` say. */
export class Palisade {
  /** Questions of all sandboxes. */
  readonly approvals = new Approvals(this);
  /** Recordings of terminals, of all sandboxes and runs. */
  readonly recordings = new Recordings(this);
  /** Declared tools. */
  readonly tools = new Tools(this);
  readonly #address: Address;
  readonly #agent: http.Agent;
  readonly #certificates: string | undefined;

  constructor(connection: Connection = {}) {
    this.#address = findAddress(connection);
    this.#certificates = connection.certificates;
    const isTls = this.#address.url.protocol === "https:";
    this.#agent = isTls ? new https.Agent({ keepAlive: true }) : new http.Agent({ keepAlive: true });
  }

  /** Ends idle connections. Sandboxes stay. */
  close(): void {
    this.#agent.destroy();
  }

  /** Whether the service is there. */
  async healthz(): Promise<boolean> {
    return (await this.request("GET", "/healthz")).status === 200;
  }

  /** Whether it can do its work; a problem says why not. */
  async readyz(): Promise<boolean> {
    return (await this.request("GET", "/readyz")).status === 200;
  }

  /** Counters, as Prometheus reads them. */
  async metrics(): Promise<string> {
    return (await this.request("GET", "/metrics")).body.toString("utf8");
  }

  /** The description of the service (OpenAPI 3.1). */
  async document(): Promise<Record<string, unknown>> {
    return this.json("GET", "/v1/openapi.json");
  }

  /**
   * What sandboxes use that run, also those of `sandbox run`, oldest first. Ask twice to know what is used now. A sandbox is among them a
   * moment after its start.
   */
  async usage(): Promise<SandboxUsage[]> {
    return (await this.json<UsageList>("GET", "/v1/usage")).sandboxes;
  }

  /**
   * Runs a command in a sandbox of its own, of which nothing is left: a text is for the shell, a list is the program and its arguments.
   * The other fields of `options` are those of a new command; after `timeoutSeconds` it is ended, and the result says so (`timedOut`).
   */
  async run(
    command: string | readonly string[],
    options: Omit<NewCommand, "argv"> & { sandbox?: NewSandbox } = {},
  ): Promise<CommandResult> {
    const { sandbox, ...rest } = options;
    const argv = typeof command === "string" ? ["/bin/sh", "-c", command] : [...command];
    const body: NewRun = { command: { ...rest, argv }, sandbox: sandbox ?? {} };
    // It belongs to the connection: if that is lost the command is ended, and must not be started a second time.
    return this.json("POST", "/v1/runs", { json: body, once: true, repeatable: false });
  }

  /** Reads the audit log. */
  async audit(filter: AuditFilter & { limit?: number } = {}): Promise<AuditPage> {
    return this.json("GET", "/v1/audit", { query: auditQuery(filter) });
  }

  /** Follows the audit log; with `sandbox` until that one has ended. */
  async *followAudit(filter: AuditFilter = {}): AsyncGenerator<AuditRecord, void, undefined> {
    for await (const event of this.events("/v1/audit/stream", { query: auditQuery(filter), reconnect: true })) {
      if (event.name === "problem") {
        throw errorOf(500, event.data as Problem);
      }
      yield event.data as AuditRecord;
    }
  }

  /** The same as `request`, with the JSON of the answer. */
  async json<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    return JSON.parse((await this.request(method, path, options)).body.toString("utf8")) as T;
  }

  /** Sends a request. Errors are thrown by the type of the problem. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const headers: Record<string, string> = { ...options.headers };
    if (options.once === true) {
      headers["Idempotency-Key"] = randomUUID();
    }
    const isRepeatable = options.repeatable ?? (options.once === true || method === "GET");
    const waitsUntil = Date.now() + IN_PROGRESS_MS;
    for (let attempt = 0; ; attempt += 1) {
      let delay = RETRIES[attempt];
      try {
        const response = await this.#open(method, path, { ...options, headers });
        const answer = await collect(response);
        if (answer.status >= 200 && answer.status < 300) {
          return answer;
        }
        const problem = errorOf(answer.status, answer.body.toString("utf8"));
        if (problem instanceof InProgress && attempt > 0 && Date.now() < waitsUntil) {
          // An earlier attempt of ours is being carried out.
          delay = 200;
          attempt -= 1;
        } else if (answer.status !== 503 || delay === undefined) {
          throw problem;
        }
      } catch (error) {
        if (!(error instanceof Lost)) {
          throw error;
        }
        if (delay === undefined || (error.hasArrived && !isRepeatable)) {
          throw this.#failure(error);
        }
      }
      await sleep(delay ?? 0);
    }
  }

  /**
   * The events of a stream. With `reconnect`, one that breaks off is opened again from the id of its last event, for half a minute at
   * most.
   */
  async *events(
    path: string,
    options: { query?: Query; reconnect?: boolean; signal?: AbortSignal } = {},
  ): AsyncGenerator<ServerEvent, void, undefined> {
    let last: string | undefined;
    let triedSince: number | undefined;
    for (;;) {
      const headers: Record<string, string> = last === undefined ? {} : { "Last-Event-ID": last };
      try {
        const response = await this.#open("GET", path, { headers, ...(options.query ? { query: options.query } : {}) });
        if (response.statusCode !== 200) {
          const answer = await collect(response);
          throw errorOf(answer.status, answer.body.toString("utf8"));
        }
        const parser = new EventParser();
        const abort = (): void => void response.destroy();
        options.signal?.addEventListener("abort", abort, { once: true });
        response.setTimeout(SILENCE_MS, () => response.destroy(new Error("the service has gone silent")));
        try {
          if (options.signal?.aborted !== true) {
            for await (const part of parts(response)) {
              for (const event of parser.feed(part)) {
                triedSince = undefined;
                last = event.id ?? last;
                yield event;
              }
            }
          }
        } finally {
          options.signal?.removeEventListener("abort", abort);
          response.destroy();
        }
        // It has ended in order: everything was said.
        return;
      } catch (error) {
        if (options.signal?.aborted === true) {
          return;
        }
        if (!(error instanceof Lost)) {
          throw error;
        }
        triedSince ??= Date.now();
        if (options.reconnect !== true || Date.now() - triedSince > RECONNECT_MS) {
          throw this.#failure(error);
        }
      }
      await sleep(RETRIES[0]);
    }
  }

  #failure(error: Lost): ConnectionFailed {
    const at = this.#address.socket ?? this.#address.url.origin;
    return error.hasArrived
      ? new ConnectionFailed(`the connection to ${at} was lost: ${error.message}`, { cause: error.cause })
      : new ConnectionFailed(`nobody listens at ${at}: start \`sandbox serve\` (${error.message})`, { cause: error.cause });
  }

  /** The head of the answer. */
  #open(method: string, path: string, options: RequestOptions): Promise<http.IncomingMessage> {
    const { url, socket, token } = this.#address;
    const target = new URL(path, url);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined && value !== null) {
        target.searchParams.set(name, String(value));
      }
    }
    const headers: Record<string, string> = { ...options.headers };
    let body: Uint8Array | undefined = options.content;
    if (options.json !== undefined) {
      body = Buffer.from(JSON.stringify(options.json), "utf8");
      headers["Content-Type"] = "application/json";
    }
    if (body !== undefined) {
      headers["Content-Length"] = String(body.length);
    }
    if (token !== undefined) {
      headers["Authorization"] = `Bearer ${token}`;
    }
    const settings: https.RequestOptions = { method, headers, agent: this.#agent };
    if (socket !== undefined) {
      settings.socketPath = socket;
    }
    if (this.#certificates !== undefined) {
      settings.ca = this.#certificates;
    }
    return new Promise((resolve, reject) => {
      const module = url.protocol === "https:" ? https : http;
      const request = module.request(target, settings, resolve);
      request.on("error", (error: NodeJS.ErrnoException) => {
        const isRefused = ["ENOENT", "ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH"].includes(error.code ?? "");
        reject(new Lost(!isRefused, error));
      });
      request.end(body);
    });
  }
}

async function* parts(response: http.IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const part of response) {
      yield part as Buffer;
    }
  } catch (error) {
    throw error instanceof ProblemError ? error : new Lost(true, error as Error);
  }
}

async function collect(response: http.IncomingMessage): Promise<Answer> {
  const found: Buffer[] = [];
  for await (const part of parts(response)) {
    found.push(part);
  }
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(found) };
}

function auditQuery(filter: AuditFilter & { limit?: number }): Query {
  return { ...filter, level: filter.level?.toLowerCase() };
}
