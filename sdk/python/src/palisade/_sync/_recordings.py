"""Recordings of terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional
from urllib.parse import quote

from .._models import Recording, RecordingList, model

if TYPE_CHECKING:
    from ._client import Palisade


class Recordings:
    """The recordings of all sandboxes and runs that were recorded (docs/recording.md)."""

    def __init__(self, client: Palisade) -> None:
        self._client = client

    def list(self, *, sandbox: Optional[str] = None) -> List[Recording]:
        """The last 500 recordings, newest first; with `sandbox` only those of the sandbox or run with this id."""
        parameters = {} if sandbox is None else {"sandbox": sandbox}
        found = self._client.request("GET", "/v1/recordings", params=parameters)
        return model(RecordingList, found.json()).recordings

    def read(self, id: str, *, command: Optional[int] = None) -> str:
        """An asciicast file, version 2. `id` is that of the sandbox, with the number of its `command`, or that of a run.

        It holds whatever the command wrote: do not print it to a terminal as it is.
        """
        parameters = {} if command is None else {"command": command}
        path = f"/v1/recordings/{quote(id, safe='')}"
        return (self._client.request("GET", path, params=parameters)).text
