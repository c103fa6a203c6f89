"""The synchronous client with a real server."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import unittest
from typing import List

import support

import palisade
from palisade import Palisade, Sandbox


class WithServer(unittest.TestCase):
    server: support.Server
    client: Palisade

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = support.Server()
        cls.server.start()
        cls.client = Palisade(support.URL)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.server.end()

    def test_a_sandbox_is_made_found_and_ended(self) -> None:
        self.assertTrue(self.client.healthz() and self.client.readyz())
        self.assertIn("palisade_service", self.client.metrics())
        self.assertTrue(self.client.document()["openapi"].startswith("3.1"))
        with Sandbox.create(name="one", timeout=600, client=self.client) as sandbox:
            self.assertEqual(sandbox.info.project, str(support.PROJECT))
            self.assertEqual(Sandbox.connect("one", client=self.client).id, sandbox.id)
            self.assertIn(sandbox.id, [info.id for info in Sandbox.list(client=self.client)])
            status = sandbox.set_timeout(6000).status
            assert status is not None and status.expires_in_ms is not None
            self.assertGreater(status.expires_in_ms, 5_000_000)
            self.assertTrue(sandbox.is_running())
            with self.assertRaises(palisade.NameTaken) as taken:
                Sandbox.create(name="one", client=self.client)
            self.assertEqual((taken.exception.status, taken.exception.kind), (409, "validation"))
        with self.assertRaises(palisade.NotFound):
            sandbox.get_info()
        with self.assertRaises(palisade.InvalidRequest):
            Sandbox.create(settings={"no.such.key": 1}, client=self.client)

    def test_commands_run_in_the_foreground(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            run = sandbox.commands.run
            result = run("cat; echo $MORE; pwd; echo err >&2; exit 3", envs={"MORE": "x"}, cwd="/usr", stdin="in\n")
            self.assertEqual((str(result.stdout), str(result.stderr)), ("in\nx\n/usr\n", "err\n"))
            self.assertEqual(result.exit_code, 3)
            self.assertEqual(run(["printf", "\\377"]).stdout.bytes, b"\xff")
            with self.assertRaises(palisade.CommandFailed) as failed:
                run("echo why >&2; exit 4", check=True)
            self.assertEqual(failed.exception.result.exit_code, 4)
            with self.assertRaises(palisade.CommandTimeout):
                run("sleep 100", timeout=1)
            with self.assertRaises(palisade.InvalidRequest) as missing:
                run(["no-such-program"])
            self.assertEqual(missing.exception.problem.exit_code, 127)
            seen: List[str] = []
            wrong: List[str] = []
            result = run("echo a; echo b >&2; sleep 0.1; echo c", on_stdout=seen.append, on_stderr=wrong.append)
            self.assertEqual(("".join(seen), "".join(wrong), result.exit_code), ("a\nc\n", "b\n", 0))
            with self.assertRaises(palisade.CommandTimeout):
                run("while true; do echo x; sleep 0.05; done", on_stdout=seen.append, timeout=0.5)
            self.assertEqual([command for command in sandbox.commands.list() if command.state == "running"], [])

    def test_commands_run_in_the_background(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            handle = sandbox.commands.run("while read line; do echo got $line; done", background=True, keep_stdin_open=True)
            handle.send_stdin("one\n")
            handle.send_stdin(b"two\n")
            handle.close_stdin()
            self.assertEqual(str(handle.wait(timeout=20).stdout), "got one\ngot two\n")
            handle = sandbox.commands.run("trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.05; done", background=True)
            for part in handle:
                self.assertEqual((part.stream, part.text), ("stdout", "ready\n"))
                break
            again = sandbox.commands.connect(handle.number)
            with self.assertRaises(palisade.CommandTimeout):
                again.wait(timeout=0.3)
            handle.kill()
            result = again.wait()
            self.assertEqual((result.exit_code, str(result.stdout)), (5, "ready\nasked\n"))
            terminal = sandbox.commands.run("stty size; read line; stty size", background=True, terminal=palisade.Size(24, 80))
            terminal.resize(30, 100)
            terminal.send_stdin("\n")
            self.assertIn("30 100", str(terminal.wait(timeout=20).stdout))
            sleeping = sandbox.commands.run("sleep 100", background=True)
            sleeping.send_signal("KILL")
            self.assertEqual(sleeping.wait().signal, 9)
            self.assertEqual(sleeping.info().state, "signalled")

    def test_files_are_written_read_and_watched(self) -> None:
        with Sandbox.create(transaction="overlay", client=self.client) as sandbox:
            files = sandbox.files
            written = files.write("d/file", "text \N{LINE SEPARATOR}\n")
            self.assertEqual((written.type, written.size), ("file", 9))
            self.assertEqual(files.read("d/file"), "text \N{LINE SEPARATOR}\n")
            self.assertEqual(files.read("d/file", format="bytes", offset=1, length=3), b"ext")
            self.assertEqual([str(entry.path) for entry in files.list("d")], ["file"])
            self.assertTrue(files.exists("d") and not files.exists("nothing"))
            files.write("d/file", b"\xff", if_match=files.stat("d/file").etag)
            with self.assertRaises(palisade.ChangedMeanwhile):
                files.write("d/file", "lost", if_match=written.etag)
            with self.assertRaises(palisade.ConflictError):
                files.write("d/file", "lost", if_exists="refuse")
            files.write("d/file", b"\xfe", if_exists="append")
            self.assertEqual(files.read("d/file", format="bytes"), b"\xff\xfe")
            self.assertEqual(files.make_dir("e/f").type, "directory")
            self.assertEqual(str(files.rename("d/file", "e/g").path), "e/g")
            changes = files.watch("e")
            self.assertIsNone(next(changes))
            sandbox.commands.run("echo x > e/new")
            for change in changes:
                assert change is not None
                if str(change.path).endswith("new"):
                    break
            changes.close()  # type: ignore[attr-defined]
            files.remove("e", recursive=True)
            self.assertFalse(files.exists("e"))

    def test_changes_are_shown_kept_brought_back_and_applied(self) -> None:
        (support.PROJECT / "old").write_text("old\n")
        with Sandbox.create(transaction="overlay", client=self.client) as sandbox:
            sandbox.commands.run("echo new > old; mkdir empty")
            diff = sandbox.diff()
            self.assertEqual([(change.path, change.kind) for change in diff.changes], [("empty", "added"), ("old", "modified")])
            self.assertIn("-old\n+new\n", sandbox.patch(path="old"))
            kept = sandbox.checkpoint("first")
            self.assertEqual([point.number for point in sandbox.checkpoints()], [kept.number])
            sandbox.commands.run("echo newer > old; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit")
            held = sandbox.preview_apply()
            self.assertEqual([refused.path for refused in held.refused], [".git/hooks/pre-commit"])
            self.assertIsInstance(held.refused[0].reason, palisade._models.RunLater)
            with self.assertRaises(palisade.ConflictError) as refused:
                sandbox.apply()
            self.assertEqual(refused.exception.held, held)
            preview = sandbox.rollback(kept.number, dry_run=True)
            self.assertIsInstance(preview, palisade.ChangeSet)
            back = sandbox.rollback(kept.number)
            assert isinstance(back, palisade.RolledBack)
            with sandbox.fork(at=back.kept_as, name="fork") as fork:
                self.assertEqual(str(fork.commands.run("cat old").stdout), "newer\n")
            fork.discard()
            fork.kill()
            self.assertEqual(sandbox.apply(["old"]).applied, ["old"])
            self.assertEqual((support.PROJECT / "old").read_text(), "new\n")
            self.assertEqual(sandbox.apply().applied, ["empty"])

    def test_changes_that_wait_outlive_the_context(self) -> None:
        with Sandbox.create(transaction="overlay", client=self.client) as sandbox:
            sandbox.commands.run("echo x > waiting")
        self.assertFalse(sandbox.is_running())
        self.assertEqual([change.path for change in sandbox.diff().changes], ["waiting"])
        with self.assertRaises(palisade.ConflictError):
            sandbox.kill()
        sandbox.kill(discard=True)

    def test_questions_are_followed_and_answered(self) -> None:
        outside = support.DIRECTORY / "outside"
        outside.mkdir(exist_ok=True)
        (outside / "file").write_text("asked for\n")
        with Sandbox.create(ask="always", client=self.client) as sandbox:
            stream = sandbox.approvals.stream()
            answered = threading.Event()

            def answer() -> None:
                for event in stream:
                    if event.question is not None:
                        self.assertIn(event.question, sandbox.approvals.list())
                        sandbox.approvals.decide(event.question, "allow")
                        answered.set()
                    if event.type == "event.audit":
                        return

            person = threading.Thread(target=answer)
            person.start()
            self.assertEqual(str(sandbox.commands.run(["cat", str(outside / "file")]).stdout), "asked for\n")
            self.assertTrue(answered.wait(20))
            person.join(20)
            with self.assertRaises(palisade.ConflictError):
                sandbox.approvals.decide(1, "deny")

    def test_the_audit_log_is_read_and_followed(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            sandbox.commands.run("true")
            page = self.client.audit(sandbox=sandbox.id, limit=2)
            self.assertEqual(page.records[0].event, "SANDBOX_CREATED")
            records = self.client.follow_audit(sandbox=sandbox.id, since=str(page.next))
            self.assertGreater(next(records).seq, page.records[-1].seq)
        self.assertEqual([record.event for record in records][-1], "SANDBOX_DESTROYED")

    def test_what_sandboxes_use_is_measured(self) -> None:
        with Sandbox.create(settings={"process.maxProcesses": 123}, client=self.client) as sandbox:
            sandbox.commands.run("sleep 100", background=True)
            # It is known a moment after its start.
            for _ in range(100):
                found = [usage for usage in self.client.usage() if usage.id == sandbox.id]
                if found:
                    break
                time.sleep(0.05)
            (usage,) = found
            self.assertTrue(usage.is_session)
            self.assertGreaterEqual(usage.processes, 2)
            self.assertGreater(usage.memory_bytes, 0)
            self.assertIn(palisade.UsageLimit("pids", 123), usage.limits)
            assert usage.status is not None
            self.assertEqual(usage.status.running_commands, 1)
        self.assertNotIn(sandbox.id, [usage.id for usage in self.client.usage()])

    def test_recordings_are_listed_and_read(self) -> None:
        recordings = self.client.recordings
        with Sandbox.create(settings={"recording.terminal": "output"}, client=self.client) as sandbox:
            terminal = palisade.Size(30, 100)
            handle = sandbox.commands.run("echo recorded $((6 * 7))", background=True, terminal=terminal)
            handle.wait(timeout=20)
            (found,) = recordings.list(sandbox=sandbox.id)
            self.assertEqual((found.id, found.command), (sandbox.id, handle.number))
            self.assertEqual((found.rows, found.columns), (30, 100))
            self.assertIn(found.id, [recording.id for recording in recordings.list()])
            self.assertEqual(recordings.list(sandbox="another"), [])
            # It is written a moment later.
            for _ in range(100):
                header, *events = recordings.read(found.id, command=found.command).splitlines()
                if events:
                    break
                time.sleep(0.05)
            self.assertEqual(json.loads(header)["version"], 2)
            self.assertIn("recorded 42", "".join(json.loads(event)[2] for event in events))
            for wrong in (sandbox.id, "../audit", "?"):
                with self.assertRaises(palisade.NotFound):
                    recordings.read(wrong)

    def test_a_server_that_is_killed_loses_no_byte_and_makes_nothing_twice(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            script = "echo before; while [ ! -e go ]; do sleep 0.05; done; echo after; exit 6"
            handle = sandbox.commands.run(script, background=True)
            seen: List[str] = []

            def told(text: str) -> None:
                seen.append(text)
                if text == "before\n":
                    self.server.end(signal.SIGKILL)
                    (support.PROJECT / "go").write_text("")
                    self.server.start()

            result = handle.wait(on_stdout=told, timeout=60)
            self.assertEqual(("".join(seen), result.exit_code), ("before\nafter\n", 6))
            before = len(Sandbox.list(client=self.client))
            key = {"Idempotency-Key": "one"}
            made = self.client.request("POST", "/v1/sandboxes", json={}, headers=key).json()
            self.server.end(signal.SIGKILL)
            self.server.start()
            again = self.client.request("POST", "/v1/sandboxes", json={}, headers=key)
            self.assertEqual((again.json()["id"], again.headers["idempotent-replayed"]), (made["id"], "true"))
            self.assertEqual(len(Sandbox.list(client=self.client)), before + 1)
            Sandbox.connect(made["id"], client=self.client).kill()


class WithoutServer(unittest.TestCase):
    def test_nobody_listens(self) -> None:
        nobody = Palisade(f"unix:{support.DIRECTORY}/nobody.sock")
        with self.assertRaisesRegex(palisade.ConnectionFailed, "sandbox serve"):
            Sandbox.create(client=nobody)
        os.environ["PALISADE_URL"] = f"unix:{support.DIRECTORY}/elsewhere.sock"
        with self.assertRaisesRegex(palisade.ConnectionFailed, "elsewhere.sock"):
            Sandbox.list()


if __name__ == "__main__":
    unittest.main()
