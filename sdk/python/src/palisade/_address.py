"""Where the service is: the same place at which `sandbox serve` listens, unless something else is said."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Optional


@dataclass(frozen=True)
class Address:
    base_url: str
    socket: Optional[str] = None
    token: Optional[str] = None

    def __str__(self) -> str:
        return self.socket if self.socket is not None else self.base_url


def default_socket() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and is_own(runtime):
        return f"{runtime}/palisade/service/http.sock"
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if state.startswith("/") else Path.home() / ".local/state"
    return str(home / "palisade/run/service/http.sock")


def is_own(directory: str) -> bool:
    """As the server judges it: of this user, and nobody else can write to it."""
    try:
        found = os.stat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & 0o022 == 0


def find(url: Optional[str], token: Optional[str], socket: Optional[str]) -> Address:
    """What is said counts, then `PALISADE_URL` and `PALISADE_TOKEN`, then the socket of this user."""
    if url is None and socket is None:
        url = os.environ.get("PALISADE_URL") or None
        token = token or os.environ.get("PALISADE_TOKEN") or None
    if url is not None and url.startswith("unix:"):
        return Address("http://localhost", url[len("unix:") :])
    if url is not None:
        return Address(url.rstrip("/"), None, token)
    return Address("http://localhost", socket or default_socket())
