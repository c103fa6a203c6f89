// Requests to the service. Each has the key that only pages of this origin know, so that no other page can make one.

const KEY = `palisade-key`;

/** A request that was not carried out, as the service says it (RFC 9457). */
export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? `the server answered ${status}`);
    this.status = status;
    this.body = body ?? {};
  }
}

let onLoggedOut = () => {};

export function whenLoggedOut(listener) {
  onLoggedOut = listener;
}

function key() {
  try {
    return localStorage.getItem(KEY) ?? "1";
  } catch {
    return "1";
  }
}

function keep(value) {
  try {
    if (value === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, value);
  } catch {
    // Without storage the login lasts for as long as nothing asks for it.
  }
}

async function send(path, { method = "GET", body, signal, headers = {} } = {}) {
  const all = { "X-Palisade-Request": key(), ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server cannot be reached. Is `sandbox serve` still running?" });
  }
  if (response.ok) return response;
  let told = null;
  try {
    told = await response.json();
  } catch {
    // Not every answer says why.
  }
  if (response.status === 401 && path !== "/v1/login") onLoggedOut();
  throw new Problem(response.status, told);
}

export async function get(path, options) {
  return (await send(path, options)).json();
}

export async function text(path, options) {
  return (await send(path, options)).text();
}

export async function post(path, body = {}, options = {}) {
  const response = await send(path, { ...options, method: "POST", body });
  return response.status === 204 ? null : response.json();
}

export async function remove(path) {
  await send(path, { method: "DELETE" });
}

export async function logIn(proof) {
  const { requestKey } = await post("/v1/login", proof);
  keep(requestKey);
}

export async function logOut() {
  await post("/v1/logout");
  keep(null);
}

/** `/v1/sandboxes/…`, with each part as it has to be written. */
export function path(...parts) {
  return `/v1/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

export function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** Text that comes bit by bit. `take` gets each part, and returns false when it has enough. */
export async function read(path, take, options) {
  const response = await send(path, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (take(value) === false) {
      await reader.cancel();
      return;
    }
  }
}

/** Server-sent events of one answer, until it ends. EventSource cannot send our header. */
async function stream(path, onEvent, { signal, onOpen }) {
  let event = { name: "message", data: "", id: undefined };
  let rest = "";
  const response = await send(path, { signal, headers: { Accept: "text/event-stream" } });
  onOpen?.();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (event.data) onEvent(event.name, JSON.parse(event.data), event.id);
        event = { name: "message", data: "", id: undefined };
      } else if (line.startsWith("event:")) event.name = line.slice(6).trim();
      else if (line.startsWith("data:")) event.data += line.slice(5).trimStart();
      else if (line.startsWith("id:")) event.id = line.slice(3).trim();
    }
  }
}

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/**
 * Follows a stream, again and again until it is stopped. `address(last)` is the path from the event after `last` on. `onEvent` returns
 * "end" when nothing more is to come.
 */
export function follow(address, { onEvent, onOpen, onLost, whileHidden = false }) {
  let stopped = false;
  let ended = false;
  let controller = null;
  let last;
  let wake = () => {};

  const isWanted = () => whileHidden || !document.hidden;
  const onVisibility = () => {
    if (isWanted()) wake();
    else controller?.abort();
  };
  document.addEventListener("visibilitychange", onVisibility);

  (async () => {
    let wait = 500;
    while (!stopped && !ended) {
      if (!isWanted()) {
        await new Promise((resolve) => (wake = resolve));
        continue;
      }
      controller = new AbortController();
      const begun = performance.now();
      let problem = null;
      try {
        await stream(address(last), (name, data, id) => {
          if (id !== undefined) last = id;
          if (!stopped && onEvent(name, data) === "end") ended = true;
        }, { signal: controller.signal, onOpen });
      } catch (error) {
        problem = error;
      }
      if (stopped || ended) break;
      if (problem?.name === "AbortError") continue;
      if (problem?.status === 404 || problem?.status === 401) {
        onLost?.(problem);
        break;
      }
      onLost?.(problem);
      // One that lasted was a good one; one that ends at once may have nothing more to say.
      if (performance.now() - begun > 10_000) wait = 500;
      await pause(wait);
      wait = Math.min(wait * 2, 8000);
    }
    document.removeEventListener("visibilitychange", onVisibility);
  })();

  return () => {
    stopped = true;
    controller?.abort();
    wake();
  };
}
