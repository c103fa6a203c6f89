// One tool call: what a model wants to run, in a sandbox that ends afterwards.

import { CommandTimeout, Sandbox, textOf } from "palisade";

async function bash(command) {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000, ask: "never" });
  try {
    const result = await sandbox.commands.run(command, { timeoutMs: 60_000 });
    const text = textOf(result.stdout) + textOf(result.stderr);
    return result.exitCode === 0 ? text : `${text}exit code ${result.exitCode}`;
  } catch (error) {
    if (error instanceof CommandTimeout) {
      return `error: ${error.message}`;
    }
    throw error;
  } finally {
    await sandbox.close();
  }
}

console.log(await bash(process.argv[2] ?? "uname -s; cat /etc/shadow"));
