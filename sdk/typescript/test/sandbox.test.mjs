// The client with a real server. `PALISADE_SDK` is the compiled package.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Server, directory, project, url } from "./support.mjs";

const palisade = await import(process.env.PALISADE_SDK);
const { Palisade, Sandbox, textOf, bytesOf } = palisade;

const server = new Server();
const client = new Palisade({ url });
before(() => server.start());
after(async () => {
  client.close();
  await server.end();
});

async function withSandbox(options, work) {
  const sandbox = await Sandbox.create({ client, ...options });
  try {
    await work(sandbox);
  } finally {
    await sandbox.close();
  }
}

test("a sandbox is made, found and ended", async () => {
  assert.ok((await client.healthz()) && (await client.readyz()));
  assert.match(await client.metrics(), /palisade_service/);
  assert.match((await client.document()).openapi, /^3\.1/);
  let id;
  await withSandbox({ name: "one", timeoutMs: 600_000 }, async (sandbox) => {
    id = sandbox.id;
    assert.equal(sandbox.info.project, project);
    assert.equal((await Sandbox.connect("one", { client })).id, id);
    assert.ok((await Sandbox.list({ client })).some((info) => info.id === id));
    assert.ok((await sandbox.setTimeout(6_000_000)).status.expiresInMs > 5_000_000);
    assert.ok(await sandbox.isRunning());
    await assert.rejects(Sandbox.create({ name: "one", client }), (error) => {
      return error instanceof palisade.NameTaken && error.status === 409 && error.kind === "validation";
    });
  });
  await assert.rejects(Sandbox.connect(id, { client }), palisade.NotFound);
  await assert.rejects(Sandbox.create({ settings: { "no.such.key": 1 }, client }), palisade.InvalidRequest);
});

test("commands run in the foreground", async () => {
  await withSandbox({}, async (sandbox) => {
    const run = sandbox.commands.run.bind(sandbox.commands);
    const script = "cat; echo $MORE; pwd; echo err >&2; exit 3";
    const result = await run(script, { envs: { MORE: "x" }, cwd: "/usr", stdin: "in\n" });
    assert.deepEqual([textOf(result.stdout), textOf(result.stderr), result.exitCode], ["in\nx\n/usr\n", "err\n", 3]);
    assert.deepEqual(bytesOf((await run(["printf", "\\377"])).stdout), Buffer.from([255]));
    await assert.rejects(run("exit 4", { check: true }), (error) => error.result.exitCode === 4);
    await assert.rejects(run("sleep 100", { timeoutMs: 1000 }), palisade.CommandTimeout);
    await assert.rejects(run(["no-such-program"]), (error) => error.problem.exitCode === 127);
    const seen = { out: "", err: "" };
    const told = { onStdout: (text) => void (seen.out += text), onStderr: (text) => void (seen.err += text) };
    await run("echo a; echo b >&2; sleep 0.1; echo c", told);
    assert.deepEqual(seen, { out: "a\nc\n", err: "b\n" });
    const endless = run("while true; do echo x; sleep 0.05; done", { ...told, timeoutMs: 500 });
    await assert.rejects(endless, palisade.CommandTimeout);
    assert.deepEqual((await sandbox.commands.list()).filter((command) => command.state === "running"), []);
  });
});

test("commands run in the background", async () => {
  await withSandbox({}, async (sandbox) => {
    const echo = "while read line; do echo got $line; done";
    let handle = await sandbox.commands.run(echo, { background: true, keepStdinOpen: true });
    await handle.sendStdin("one\n");
    await handle.sendStdin(Buffer.from("two\n"));
    await handle.closeStdin();
    assert.equal(textOf((await handle.wait({ timeoutMs: 20_000 })).stdout), "got one\ngot two\n");
    const stubborn = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    handle = await sandbox.commands.run(stubborn, { background: true });
    for await (const part of handle) {
      assert.deepEqual([part.stream, part.data], ["stdout", "ready\n"]);
      break;
    }
    const again = await sandbox.commands.connect(handle.number);
    await assert.rejects(again.wait({ timeoutMs: 300 }), palisade.CommandTimeout);
    await handle.kill();
    const result = await again.wait();
    assert.deepEqual([result.exitCode, textOf(result.stdout)], [5, "ready\nasked\n"]);
    const terminal = await sandbox.commands.run("stty size; read line; stty size", {
      background: true,
      terminal: { rows: 24, columns: 80 },
    });
    await terminal.resize(30, 100);
    await terminal.sendStdin("\n");
    assert.match(textOf((await terminal.wait({ timeoutMs: 20_000 })).stdout), /30 100/);
    const sleeping = await sandbox.commands.run("sleep 100", { background: true });
    await sleeping.sendSignal("KILL");
    assert.equal((await sleeping.wait()).signal, 9);
  });
});

test("files are written, read and watched", async () => {
  await withSandbox({ transaction: "overlay" }, async ({ files, commands }) => {
    const written = await files.write("d/file", "text \u2028\n");
    assert.deepEqual([written.type, written.size], ["file", 9]);
    assert.equal(await files.read("d/file"), "text \u2028\n");
    assert.equal(await files.read("d/file", { offset: 1, length: 3 }), "ext");
    assert.deepEqual((await files.list("d")).map((entry) => textOf(entry.path)), ["file"]);
    assert.ok((await files.exists("d")) && !(await files.exists("nothing")));
    await files.write("d/file", Buffer.from([255]), { ifMatch: (await files.stat("d/file")).etag });
    await assert.rejects(files.write("d/file", "lost", { ifMatch: written.etag }), palisade.ChangedMeanwhile);
    await assert.rejects(files.write("d/file", "lost", { ifExists: "refuse" }), palisade.ConflictError);
    await files.write("d/file", Buffer.from([254]), { ifExists: "append" });
    assert.deepEqual(await files.readBytes("d/file"), Buffer.from([255, 254]));
    assert.equal((await files.makeDir("e/f")).type, "directory");
    assert.equal(textOf((await files.rename("d/file", "e/g")).path), "e/g");
    const changes = files.watch("e");
    assert.equal((await changes.next()).value, undefined);
    await commands.run("echo x > e/new");
    for await (const change of changes) {
      if (textOf(change.path).endsWith("new")) {
        break;
      }
    }
    await files.remove("e", { recursive: true });
    assert.ok(!(await files.exists("e")));
  });
});

test("changes are shown, kept, brought back and applied", async () => {
  writeFileSync(`${project}/old`, "old\n");
  await withSandbox({ transaction: "overlay" }, async (sandbox) => {
    await sandbox.commands.run("echo new > old; mkdir empty");
    const diff = await sandbox.diff();
    assert.deepEqual(diff.changes.map((change) => [change.path, change.kind]), [["empty", "added"], ["old", "modified"]]);
    assert.match(await sandbox.patch({ path: "old" }), /-old\n\+new\n/);
    const kept = await sandbox.checkpoint("first");
    assert.deepEqual((await sandbox.checkpoints()).map((point) => point.number), [kept.number]);
    await sandbox.commands.run("echo newer > old; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit");
    const held = await sandbox.previewApply();
    assert.equal(held.refused[0].path, ".git/hooks/pre-commit");
    await assert.rejects(sandbox.apply(), (error) => {
      assert.deepEqual(error.held, held);
      return error instanceof palisade.ConflictError;
    });
    assert.ok("changes" in (await sandbox.rollback(kept.number, { dryRun: true })));
    const back = await sandbox.rollback(kept.number);
    const fork = await sandbox.fork({ at: back.keptAs, name: "fork" });
    assert.equal(textOf((await fork.commands.run("cat old")).stdout), "newer\n");
    await fork.close();
    await fork.discard();
    await fork.kill();
    assert.deepEqual((await sandbox.apply(["old"])).applied, ["old"]);
    assert.equal(readFileSync(`${project}/old`, "utf8"), "new\n");
    assert.deepEqual((await sandbox.apply()).applied, ["empty"]);
  });
});

test("questions are followed and answered", async () => {
  mkdirSync(`${directory}/outside`, { recursive: true });
  writeFileSync(`${directory}/outside/file`, "asked for\n");
  await withSandbox({ ask: "always" }, async (sandbox) => {
    const person = (async () => {
      for await (const event of sandbox.approvals.stream()) {
        if (event.question !== undefined) {
          assert.equal((await sandbox.approvals.list())[0].path, event.question.path);
          await sandbox.approvals.decide(event.question, "allow");
          return;
        }
      }
    })();
    const read = await sandbox.commands.run(["cat", `${directory}/outside/file`]);
    assert.equal(textOf(read.stdout), "asked for\n");
    await person;
    await assert.rejects(sandbox.approvals.decide(1, "deny"), palisade.ConflictError);
  });
});

test("the audit log is read and followed", async () => {
  let records;
  await withSandbox({}, async (sandbox) => {
    await sandbox.commands.run("true");
    const page = await client.audit({ sandbox: sandbox.id, limit: 2 });
    assert.equal(page.records[0].event, "SANDBOX_CREATED");
    records = client.followAudit({ sandbox: sandbox.id, since: String(page.next) });
    assert.ok((await records.next()).value.seq > page.records[1].seq);
  });
  let last;
  for await (const record of records) {
    last = record.event;
  }
  assert.equal(last, "SANDBOX_DESTROYED");
});

test("what sandboxes use is measured", async () => {
  const used = async (id) => (await client.usage()).filter((usage) => usage.id === id);
  let id;
  await withSandbox({ settings: { "process.maxProcesses": 123 } }, async (sandbox) => {
    id = sandbox.id;
    await sandbox.commands.run("sleep 100", { background: true });
    let usage;
    // It is known a moment after its start.
    for (let attempt = 0; attempt < 100 && usage === undefined; attempt += 1) {
      await sleep(50);
      [usage] = await used(id);
    }
    assert.ok(usage.isSession && usage.processes >= 2 && usage.memoryBytes > 0);
    assert.equal(usage.limits.find((limit) => limit.name === "pids").value, 123);
    assert.equal(usage.status.runningCommands, 1);
  });
  assert.deepEqual(await used(id), []);
});

test("recordings are listed and read", async () => {
  const { recordings } = client;
  await withSandbox({ settings: { "recording.terminal": "output" } }, async ({ id, commands }) => {
    const terminal = { rows: 30, columns: 100 };
    const handle = await commands.run("echo recorded $((6 * 7))", { background: true, terminal });
    await handle.wait({ timeoutMs: 20_000 });
    const [found] = await recordings.list({ sandbox: id });
    assert.deepEqual([found.id, found.command, found.rows, found.columns], [id, handle.number, 30, 100]);
    assert.ok((await recordings.list()).some((recording) => recording.id === id));
    assert.deepEqual(await recordings.list({ sandbox: "another" }), []);
    let header, events;
    // It is written a moment later.
    for (let attempt = 0; attempt < 100; attempt += 1) {
      [header, ...events] = (await recordings.read(id, { command: found.command })).trimEnd().split("\n");
      if (events.length > 0) {
        break;
      }
      await sleep(50);
    }
    assert.equal(JSON.parse(header).version, 2);
    assert.match(events.map((event) => JSON.parse(event)[2]).join(""), /recorded 42/);
    for (const wrong of [id, "../audit", "?"]) {
      await assert.rejects(recordings.read(wrong), palisade.NotFound);
    }
  });
});

test("a server that is killed loses no byte and makes nothing twice", async () => {
  await withSandbox({}, async (sandbox) => {
    const script = "echo before; while [ ! -e go ]; do sleep 0.05; done; echo after; exit 6";
    const handle = await sandbox.commands.run(script, { background: true });
    let seen = "";
    for await (const part of handle) {
      seen += part.data;
      if (seen === "before\n") {
        await server.end("SIGKILL");
        writeFileSync(`${project}/go`, "");
        await server.start();
      }
    }
    assert.equal(seen, "before\nafter\n");
    assert.equal((await handle.info()).exitCode, 6);
    const request = { json: {}, headers: { "Idempotency-Key": "one" }, repeatable: true };
    const made = await client.json("POST", "/v1/sandboxes", request);
    await server.end("SIGKILL");
    await server.start();
    assert.equal((await client.json("POST", "/v1/sandboxes", request)).id, made.id);
    await (await Sandbox.connect(made.id, { client })).kill();
  });
});

test("nobody listens", async () => {
  const nobody = new Palisade({ url: `unix:${directory}/nobody.sock` });
  await assert.rejects(Sandbox.create({ client: nobody }), (error) => {
    return error instanceof palisade.ConnectionFailed && /sandbox serve/.test(error.message);
  });
});
