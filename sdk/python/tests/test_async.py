"""The asynchronous client with a real server."""

from __future__ import annotations

import asyncio
import unittest

import support

import palisade
from palisade import AsyncPalisade, AsyncSandbox


class Async(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = support.Server()
        cls.server.start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.end()

    async def test_sandboxes_work_side_by_side(self) -> None:
        async with AsyncPalisade(support.URL) as client:

            async def one(number: int) -> str:
                sandbox = await AsyncSandbox.create(transaction="overlay", client=client)
                await sandbox.files.write("file", f"{number}\n")
                result = await sandbox.commands.run("cat file", check=True)
                self.assertEqual([change.path for change in (await sandbox.diff()).changes], ["file"])
                await sandbox.kill(discard=True)
                return str(result.stdout)

            said = await asyncio.gather(*(one(number) for number in range(4)))
            self.assertEqual(said, ["0\n", "1\n", "2\n", "3\n"])
            self.assertEqual(await AsyncSandbox.list(client=client), [])

    async def test_output_comes_as_it_is_written(self) -> None:
        async with AsyncPalisade(support.URL) as client, await AsyncSandbox.create(client=client) as sandbox:
            handle = await sandbox.commands.run("echo a; echo b >&2", background=True)
            parts = [(part.stream, part.text) async for part in handle]
            self.assertEqual(sorted(parts), [("stderr", "b\n"), ("stdout", "a\n")])
            with self.assertRaises(palisade.CommandTimeout):
                await sandbox.commands.run("sleep 60", on_stdout=print, timeout=0.5)
            running = asyncio.ensure_future(sandbox.commands.run("sleep 60", on_stdout=print))
            while not [command for command in await sandbox.commands.list() if command.state == "running"]:
                await asyncio.sleep(0.02)
            running.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await running

    async def test_usage_is_measured_and_recordings_are_read(self) -> None:
        settings = {"recording.terminal": "output"}
        async with AsyncPalisade(support.URL) as client, await AsyncSandbox.create(settings=settings, client=client) as sandbox:
            # It is known a moment after its start.
            for _ in range(100):
                used = [usage.id for usage in await client.usage()]
                if sandbox.id in used:
                    break
                await asyncio.sleep(0.05)
            self.assertIn(sandbox.id, used)
            handle = await sandbox.commands.run("echo recorded $((6 * 7))", background=True)
            await handle.wait(timeout=20)
            (found,) = await client.recordings.list(sandbox=sandbox.id)
            # It is written a moment later. The title has the command, but not what that wrote.
            for _ in range(100):
                read = await client.recordings.read(found.id, command=found.command)
                if "recorded 42" in read:
                    break
                await asyncio.sleep(0.05)
            self.assertIn("recorded 42", read)

    async def test_questions_are_answered(self) -> None:
        outside = support.DIRECTORY / "outside-async"
        outside.mkdir(exist_ok=True)
        (outside / "file").write_text("asked for\n")
        async with AsyncPalisade(support.URL) as client, await AsyncSandbox.create(ask="always", client=client) as sandbox:

            async def answer() -> None:
                async for event in sandbox.approvals.stream():
                    if event.question is not None:
                        await sandbox.approvals.decide(event.question, "deny")
                        return

            person = asyncio.ensure_future(answer())
            result = await sandbox.commands.run(["cat", str(outside / "file")])
            self.assertIn("Permission denied", str(result.stderr))
            await person


if __name__ == "__main__":
    unittest.main()
