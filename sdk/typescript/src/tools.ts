/** Declared tools. */

import type { Palisade } from "./client.js";
import type { DeclaredTool, KeptDeclaration, ToolDeclaration, ToolList, ToolResult } from "./models.js";

/** Tools that are declared with a name, an input, a command and a policy (docs/tools.md). Each call has a sandbox of its own. */
export class Tools {
  readonly #client: Palisade;

  constructor(client: Palisade) {
    this.#client = client;
  }

  /** The tools that count: the user's own, and those of the project that are trusted. */
  async list(options: { project?: string } = {}): Promise<DeclaredTool[]> {
    const query = { project: options.project };
    return (await this.#client.json<ToolList>("GET", "/v1/tools", { query })).tools;
  }

  /** A tool with its policy, and with what a person has to approve before it runs. */
  async get(name: string, options: { project?: string } = {}): Promise<DeclaredTool> {
    const query = { project: options.project };
    return await this.#client.json<DeclaredTool>("GET", pathOf(name), { query });
  }

  /** Keeps a declaration as the user's own, and says in which file. It approves nothing: a person does. */
  async declare(declaration: ToolDeclaration, options: { replace?: boolean } = {}): Promise<string> {
    const query = { replace: options.replace };
    return (await this.#client.json<KeptDeclaration>("POST", "/v1/tools", { query, json: declaration })).file;
  }

  /** Removes a declaration of the user's own. */
  async remove(name: string): Promise<void> {
    await this.#client.request("DELETE", pathOf(name));
  }

  /** Runs a tool once. What it ends with is in the result; an error is thrown only if it did not run. */
  async run(name: string, input: Record<string, unknown> = {}, options: { project?: string } = {}): Promise<ToolResult> {
    const json = { input, project: options.project };
    return await this.#client.json<ToolResult>("POST", `${pathOf(name)}/run`, { json });
  }
}

function pathOf(name: string): string {
  return `/v1/tools/${encodeURIComponent(name)}`;
}
