"""An agent loop: commands run while another task answers the questions of the sandbox."""

import asyncio
import sys

from palisade import AsyncSandbox, Decision, Question


def is_allowed(question: Question) -> bool:
    """Where you would ask a person. A secret is never allowed by rote."""
    is_read = question.path is not None and question.act in ("see", "read")
    return is_read and not question.is_secret


async def answer(sandbox: AsyncSandbox) -> None:
    async for event in sandbox.approvals.stream():
        if event.question is not None:
            decision: Decision = "allow" if is_allowed(event.question) else "deny"
            print(f"{decision}: {event.question.path or event.question.host!r}", file=sys.stderr)
            await sandbox.approvals.decide(event.question, decision)


async def main() -> None:
    async with await AsyncSandbox.create(ask="always", transaction="overlay") as sandbox:
        person = asyncio.ensure_future(answer(sandbox))
        # A model would choose these.
        for command in sys.argv[1:] or ["id -u", "ls"]:
            result = await sandbox.commands.run(command, on_stdout=lambda text: print(text, end=""), timeout=60)
            print(f"[{result.exit_code}] {command}")
        person.cancel()


asyncio.run(main())
