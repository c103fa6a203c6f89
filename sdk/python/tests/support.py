"""A server for the tests: `PALISADE_BIN` is the program, and everything is in `PALISADE_TEST_DIRECTORY`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Optional

DIRECTORY = Path(os.environ["PALISADE_TEST_DIRECTORY"])
PROJECT = Path(os.environ["PALISADE_TEST_PROJECT"])
SOCKET = DIRECTORY / "http.sock"
URL = f"unix:{SOCKET}"


class Server:
    """Ended with the thread that started it, whatever happens to that."""

    def __init__(self) -> None:
        self._running: Optional[subprocess.Popen[bytes]] = None

    def start(self) -> None:
        self._running = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", os.environ["PALISADE_BIN"], "serve", "--listen", URL],
            cwd=PROJECT,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(1000):
            if SOCKET.exists() and is_answered():
                return
            time.sleep(0.02)
        raise AssertionError("the server does not listen")

    def end(self, number: int = signal.SIGTERM) -> None:
        assert self._running is not None
        self._running.send_signal(number)
        self._running.wait()


def is_answered() -> bool:
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(SOCKET))
        except OSError:
            return False
    return True
