// An agent loop: commands run while somebody answers the questions of the sandbox.

import { Sandbox } from "palisade";

/** Where you would ask a person. A secret is never allowed by rote. */
function isAllowed(question) {
  return question.path !== undefined && ["see", "read"].includes(question.act) && !question.isSecret;
}

const sandbox = await Sandbox.create({ ask: "always", transaction: "overlay" });
const stop = new AbortController();
const person = (async () => {
  for await (const { question } of sandbox.approvals.stream({ signal: stop.signal })) {
    if (question !== undefined) {
      const decision = isAllowed(question) ? "allow" : "deny";
      console.error(`${decision}: ${JSON.stringify(question.path ?? question.host)}`);
      await sandbox.approvals.decide(question, decision);
    }
  }
})();
try {
  const commands = process.argv.length > 2 ? process.argv.slice(2) : ["id -u", "ls"];
  // A model would choose these.
  for (const command of commands) {
    const result = await sandbox.commands.run(command, { onStdout: (text) => process.stdout.write(text), timeoutMs: 60_000 });
    console.log(`[${result.exitCode}] ${command}`);
  }
} finally {
  stop.abort();
  await person;
  await sandbox.close();
}
