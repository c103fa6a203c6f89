/** Files of a sandbox: the very ones that its commands see, under the same rules. */

import type { Palisade } from "./client.js";
import { NotFound, errorOf } from "./errors.js";
import type { ChangeDocument, Entries, FileDocument, NewDirectory, Problem, Renaming } from "./models.js";

export interface WriteOptions {
  ifExists?: "replace" | "refuse" | "append";
  /** Make missing directories on the way; true if nothing is said. */
  makeParents?: boolean;
  /** For a new file, in octal. */
  mode?: string;
  /** An etag: only that version is replaced. */
  ifMatch?: string;
}

/** `sandbox.files`. A path counts from the sandbox's project, unless it begins with a slash. */
export class Files {
  readonly #client: Palisade;
  readonly #path: string;

  constructor(client: Palisade, sandbox: string) {
    this.#client = client;
    this.#path = `/v1/sandboxes/${encodeURIComponent(sandbox)}/files`;
  }

  /** Reads a file as text. */
  async read(path: string, range: { offset?: number; length?: number } = {}): Promise<string> {
    return (await this.readBytes(path, range)).toString("utf8");
  }

  /** Reads a file, or `length` bytes of it from `offset` on. */
  async readBytes(path: string, range: { offset?: number; length?: number } = {}): Promise<Buffer> {
    const { offset = 0, length } = range;
    if (length === 0) {
      return Buffer.alloc(0);
    }
    const isWhole = offset === 0 && length === undefined;
    const last = length === undefined ? "" : String(offset + length - 1);
    const headers: Record<string, string> = isWhole ? {} : { Range: `bytes=${offset}-${last}` };
    return (await this.#client.request("GET", `${this.#path}/content`, { query: { path }, headers })).body;
  }

  /** Writes a file. Until all of it is there it stays as it was. */
  async write(path: string, data: string | Uint8Array, options: WriteOptions = {}): Promise<FileDocument> {
    const { ifExists = "replace", makeParents = true, mode, ifMatch } = options;
    const headers: Record<string, string> = { "Content-Type": "application/octet-stream" };
    if (ifMatch !== undefined) {
      headers["If-Match"] = ifMatch;
    }
    return this.#client.json("PUT", `${this.#path}/content`, {
      query: { path, ifExists, makeParents, mode },
      content: typeof data === "string" ? Buffer.from(data, "utf8") : data,
      headers,
      repeatable: ifExists === "replace" && ifMatch === undefined,
    });
  }

  /** Lists a directory, with the directories below it up to `depth`. Links are not followed. */
  async list(path = ".", options: { depth?: number } = {}): Promise<FileDocument[]> {
    const query = { path, depth: options.depth };
    return (await this.#client.json<Entries>("GET", `${this.#path}/entries`, { query })).entries;
  }

  async exists(path: string): Promise<boolean> {
    try {
      await this.stat(path, { followLinks: true });
      return true;
    } catch (error) {
      if (error instanceof NotFound) {
        return false;
      }
      throw error;
    }
  }

  /** What is at a path. */
  stat(path: string, options: { followLinks?: boolean } = {}): Promise<FileDocument> {
    return this.#client.json("GET", this.#path, { query: { path, followLinks: options.followLinks ?? false } });
  }

  /** Renames a file or a directory. */
  rename(from: string, to: string, options: { replace?: boolean } = {}): Promise<FileDocument> {
    const json: Renaming = { from, to, replace: options.replace ?? false };
    return this.#client.json("POST", `${this.#path}/rename`, { json });
  }

  /** Removes a file, or with `recursive` a directory with what is in it. */
  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    await this.#client.request("DELETE", this.#path, { query: { path, recursive: options.recursive ?? false } });
  }

  /** Makes a directory. */
  makeDir(path: string, options: { makeParents?: boolean } = {}): Promise<FileDocument> {
    const json: NewDirectory = { path, makeParents: options.makeParents ?? true };
    return this.#client.json("POST", `${this.#path}/directories`, { json });
  }

  /** Follows what happens in a directory. The first item is undefined: from then on nothing is missed. */
  async *watch(
    path = ".",
    options: { recursive?: boolean; signal?: AbortSignal } = {},
  ): AsyncGenerator<ChangeDocument | undefined, void, undefined> {
    const query = { path, recursive: options.recursive ?? false };
    const signal = options.signal === undefined ? {} : { signal: options.signal };
    for await (const event of this.#client.events(`${this.#path}/watch`, { query, ...signal })) {
      if (event.name === "watching") {
        yield undefined;
      } else if (event.name === "change") {
        yield event.data as ChangeDocument;
      } else if (event.name === "problem") {
        throw errorOf(500, event.data as Problem);
      }
    }
  }
}
