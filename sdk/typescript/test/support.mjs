// A server for the tests: `PALISADE_BIN` is the program, and everything is in `PALISADE_TEST_DIRECTORY`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export const directory = process.env.PALISADE_TEST_DIRECTORY;
export const project = process.env.PALISADE_TEST_PROJECT;
const socket = `${directory}/http.sock`;
export const url = `unix:${socket}`;

/** Ended with the program that started it, whatever happens to that. */
export class Server {
  #running;

  async start() {
    const words = ["--pdeathsig", "TERM", process.env.PALISADE_BIN, "serve", "--listen", url];
    this.#running = spawn("setpriv", words, { cwd: project, stdio: "ignore" });
    for (let attempt = 0; attempt < 1000; attempt += 1) {
      if (await isAnswered()) {
        return;
      }
      await sleep(20);
    }
    throw new Error("the server does not listen");
  }

  async end(signal = "SIGTERM") {
    const ended = once(this.#running, "exit");
    this.#running.kill(signal);
    await ended;
  }
}

function isAnswered() {
  return new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    });
    connection.on("error", () => resolve(false));
  });
}
