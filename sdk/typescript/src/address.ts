/** Where the service is: the same place at which `sandbox serve` listens, unless something else is said. */

import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export interface Connection {
  /** Such as `http://127.0.0.1:8080` or `unix:/path/of/the.sock`; `PALISADE_URL` if nothing is said. */
  url?: string;
  /** Over TCP; `PALISADE_TOKEN` if nothing is said. */
  token?: string;
  /** Certificates (PEM) to trust, for a server with a certificate of its own. */
  certificates?: string;
}

export interface Address {
  socket?: string;
  url: URL;
  token?: string;
}

export function defaultSocket(): string {
  const runtime = process.env["XDG_RUNTIME_DIR"] ?? "";
  if (runtime.startsWith("/") && isOwn(runtime)) {
    return join(runtime, "palisade/service/http.sock");
  }
  const state = process.env["XDG_STATE_HOME"] ?? "";
  return join(state.startsWith("/") ? state : join(homedir(), ".local/state"), "palisade/run/service/http.sock");
}

/** As the server judges it: of this user, and nobody else can write to it. */
function isOwn(directory: string): boolean {
  try {
    const found = statSync(directory);
    return found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o022) === 0;
  } catch {
    return false;
  }
}

/** What is said counts, then `PALISADE_URL` and `PALISADE_TOKEN`, then the socket of this user. */
export function findAddress(connection: Connection): Address {
  const url = connection.url ?? (process.env["PALISADE_URL"] || `unix:${defaultSocket()}`);
  if (url.startsWith("unix:")) {
    return { socket: url.slice("unix:".length), url: new URL("http://localhost") };
  }
  const token = connection.token ?? (connection.url === undefined ? process.env["PALISADE_TOKEN"] : undefined);
  return { url: new URL(url), ...(token ? { token } : {}) };
}
