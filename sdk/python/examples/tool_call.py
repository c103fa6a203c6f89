"""One tool call: what a model wants to run, in a sandbox that ends afterwards."""

import sys

from palisade import CommandTimeout, Sandbox


def bash(command: str) -> str:
    """The text that the model gets back."""
    with Sandbox.create(timeout=600, ask="never") as sandbox:
        try:
            result = sandbox.commands.run(command, timeout=60)
        except CommandTimeout as error:
            return f"error: {error}"
        text = str(result.stdout) + str(result.stderr)
        return text if result.exit_code == 0 else f"{text}exit code {result.exit_code}"


if __name__ == "__main__":
    print(bash(sys.argv[1] if len(sys.argv) > 1 else "uname -s; cat /etc/shadow"))
