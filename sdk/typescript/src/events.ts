/** Server-sent events, from bytes. */

export interface ServerEvent {
  name: string;
  data: unknown;
  id?: string;
}

/** Takes bytes as they come. Only line feeds end a line: texts in the data may hold any other break. */
export class EventParser {
  #rest: Buffer = Buffer.alloc(0);
  #name = "message";
  #data: string[] = [];
  #id: string | undefined;

  feed(part: Uint8Array): ServerEvent[] {
    const events: ServerEvent[] = [];
    let bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, part]) : Buffer.from(part);
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10)) {
      const event = this.#take(bytes.subarray(0, end).toString("utf8"));
      if (event !== undefined) {
        events.push(event);
      }
      bytes = bytes.subarray(end + 1);
    }
    this.#rest = bytes;
    return events;
  }

  #take(line: string): ServerEvent | undefined {
    if (line !== "") {
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") {
        this.#name = value;
      } else if (name === "data") {
        this.#data.push(value);
      } else if (name === "id") {
        this.#id = value;
      }
      return undefined;
    }
    if (this.#data.length === 0) {
      return undefined;
    }
    const data: unknown = JSON.parse(this.#data.join("\n"));
    const event: ServerEvent = { name: this.#name, data, ...(this.#id === undefined ? {} : { id: this.#id }) };
    this.#name = "message";
    this.#data = [];
    this.#id = undefined;
    return event;
  }
}
