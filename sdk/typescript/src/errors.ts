/** What can go wrong, by the `type` of the problem that the service answers with. */

import type { CommandResult, Held, Problem, ProblemKind } from "./models.js";
import { textOf } from "./models.js";

/** Anything that goes wrong with a sandbox. */
export class PalisadeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Nobody listens, or the connection was lost and could not be made again. */
export class ConnectionFailed extends PalisadeError {}

/** A command ended with another exit code than 0 (`check: true`). */
export class CommandFailed extends PalisadeError {
  constructor(readonly result: CommandResult) {
    super(`the command ended with ${result.exitCode}: ${textOf(result.stderr).slice(-2000)}`);
  }
}

/** A command was ended because its time was over. */
export class CommandTimeout extends PalisadeError {
  constructor(message: string, readonly result?: CommandResult) {
    super(message);
  }
}

/** The service did not carry a request out. */
export class ProblemError extends PalisadeError {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }

  get type(): string {
    return this.problem.type;
  }

  get kind(): ProblemKind {
    return this.problem.kind;
  }

  get status(): number {
    return this.problem.status;
  }
}

/** It cannot be read, or asks for something that cannot be. */
export class InvalidRequest extends ProblemError {}
/** There is no sandbox, command or file of this name. */
export class NotFound extends ProblemError {}
/** The policy does not allow it. */
export class NotAllowed extends ProblemError {}
/** No valid token, or another user. */
export class NotAuthorised extends ProblemError {}
/** The present state does not allow it. */
export class ConflictError extends ProblemError {
  /** What stands in the way of an apply. */
  get held(): Held | undefined {
    return this.problem.held ?? undefined;
  }
}
/** Another sandbox has this name. */
export class NameTaken extends ConflictError {}
/** The same request is being carried out. */
export class InProgress extends ConflictError {}
/** The server was ended while it carried the same request out, and nobody knows how far it came. */
export class Interrupted extends ConflictError {}
/** A file is not the version that was to be replaced. */
export class ChangedMeanwhile extends ConflictError {}
/** Of a request, a file or an answer. */
export class TooLarge extends ProblemError {}
/** Too much is going on, or something that is needed is used up. */
export class Busy extends ProblemError {}
/** It took too long. */
export class TimedOut extends ProblemError {}
/** It was cancelled. */
export class Cancelled extends ProblemError {}
/** The service could not do it. */
export class Failed extends ProblemError {}

const PREFIX = "urn:palisade:problem:";

const BY_TYPE: Record<string, new (problem: Problem) => ProblemError> = {
  malformed: InvalidRequest,
  invalid: InvalidRequest,
  "media-type": InvalidRequest,
  method: InvalidRequest,
  range: InvalidRequest,
  "not-found": NotFound,
  refused: NotAllowed,
  unauthorised: NotAuthorised,
  forbidden: NotAuthorised,
  conflict: ConflictError,
  "name-taken": NameTaken,
  "in-progress": InProgress,
  interrupted: Interrupted,
  changed: ChangedMeanwhile,
  "too-large": TooLarge,
  busy: Busy,
  timeout: TimedOut,
  slow: TimedOut,
  cancelled: Cancelled,
  failed: Failed,
};

/** The error for an answer that is no success. */
export function errorOf(status: number, body: string | Problem): ProblemError {
  let problem: Problem;
  try {
    const read = typeof body === "string" ? (JSON.parse(body) as Problem) : body;
    if (typeof read.type !== "string" || typeof read.detail !== "string") {
      throw new TypeError("no problem");
    }
    problem = read;
  } catch {
    const detail = typeof body === "string" ? body.slice(0, 2000) : "no problem";
    problem = { type: "about:blank", title: "No answer of this service", status, detail, kind: "initialisation" };
  }
  const name = problem.type.startsWith(PREFIX) ? problem.type.slice(PREFIX.length) : "";
  const wanted = Object.hasOwn(BY_TYPE, name) ? BY_TYPE[name] : undefined;
  return new (wanted ?? ProblemError)(problem);
}
