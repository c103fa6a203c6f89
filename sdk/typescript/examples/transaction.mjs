// A session whose changes are shown before they reach the project.

import { ConflictError, Sandbox } from "palisade";

const sandbox = await Sandbox.create({ transaction: "overlay" });
try {
  await sandbox.files.write("greeting.txt", "hello\n");
  const before = await sandbox.checkpoint("greeting written");
  await sandbox.commands.run("tr a-z A-Z < greeting.txt > loud.txt && rm greeting.txt", { check: true });
  await sandbox.rollback(before.number);
  await sandbox.commands.run("tr a-z A-Z < greeting.txt > loud.txt", { check: true });
  process.stdout.write(await sandbox.patch());
  console.log("applied:", (await sandbox.apply()).applied.join(", "));
} catch (error) {
  if (!(error instanceof ConflictError)) {
    throw error;
  }
  console.log("not applied:", error.held);
} finally {
  await sandbox.close();
}
