/** Questions of sandboxes, and answers to them. */

import type { Palisade } from "./client.js";
import { errorOf } from "./errors.js";
import type { ApprovalAnswer, ApprovalList, Decision, Problem, Question } from "./models.js";

/** Something that happened to questions: `type` is one of docs/protocol.md, and `question` is there if one was asked. */
export interface ApprovalEvent {
  type: string;
  session: string;
  data: Record<string, unknown>;
  question?: Question;
}

/** The questions of all sandboxes, or of one. */
export class Approvals {
  readonly #client: Palisade;
  readonly #session: string | undefined;

  constructor(client: Palisade, session?: string) {
    this.#client = client;
    this.#session = session;
  }

  /** The questions that wait for an answer. */
  async list(): Promise<Question[]> {
    const found = await this.#client.json<ApprovalList>("GET", "/v1/approvals");
    return found.questions.filter((question) => this.#isOurs(question.session));
  }

  /** Follows questions and answers. While you read this, sandboxes wait for an answer that would otherwise deny. */
  async *stream(options: { signal?: AbortSignal } = {}): AsyncGenerator<ApprovalEvent, void, undefined> {
    for await (const event of this.#client.events("/v1/approvals/stream", { reconnect: true, ...options })) {
      if (event.name === "problem") {
        throw errorOf(500, event.data as Problem);
      }
      const data = event.data as Record<string, unknown>;
      const session = String(data["session"] ?? "");
      if (!this.#isOurs(session)) {
        continue;
      }
      const isQuestion = event.name === "event.fs_request" || event.name === "event.host_request";
      const question = isQuestion ? { question: event.data as Question } : {};
      yield { type: event.name, session, data, ...question };
    }
  }

  /** Answers a question. The first answer counts, wherever it is given; ConflictError if it was not this one. */
  async decide(
    question: Question | number,
    decision: Decision,
    options: Omit<ApprovalAnswer, "decision"> = {},
  ): Promise<void> {
    const session = typeof question === "number" ? this.#session : question.session;
    if (session === undefined) {
      throw new TypeError("a number alone means a question only for the approvals of one sandbox");
    }
    const number = typeof question === "number" ? question : question.id;
    const answer: ApprovalAnswer = { decision, ...options };
    await this.#client.request("POST", `/v1/approvals/${encodeURIComponent(session)}/${number}`, { json: answer });
  }

  #isOurs(session: string): boolean {
    return this.#session === undefined || this.#session === session;
  }
}
