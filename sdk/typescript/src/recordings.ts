/** Recordings of terminals. */

import type { Palisade } from "./client.js";
import type { Recording, RecordingList } from "./models.js";

/** The recordings of all sandboxes and runs that were recorded (docs/recording.md). */
export class Recordings {
  readonly #client: Palisade;

  constructor(client: Palisade) {
    this.#client = client;
  }

  /** The last 500 recordings, newest first; with `sandbox` only those of the sandbox or run with this id. */
  async list(options: { sandbox?: string } = {}): Promise<Recording[]> {
    const query = { sandbox: options.sandbox };
    return (await this.#client.json<RecordingList>("GET", "/v1/recordings", { query })).recordings;
  }

  /**
   * An asciicast file, version 2. `id` is that of the sandbox, with the number of its `command`, or that of a run. It holds whatever the
   * command wrote: do not print it to a terminal as it is.
   */
  async read(id: string, options: { command?: number } = {}): Promise<string> {
    const query = { command: options.command };
    const answer = await this.#client.request("GET", `/v1/recordings/${encodeURIComponent(id)}`, { query });
    return answer.body.toString("utf8");
  }
}
