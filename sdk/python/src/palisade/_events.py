"""Server-sent events, from bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, List, Optional


@dataclass(frozen=True)
class ServerEvent:
    name: str
    data: Any
    id: Optional[str]


class EventParser:
    """Takes bytes as they come. Only line feeds end a line: texts in the data may hold any other break."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = "message"
        self._data: List[bytes] = []
        self._id: Optional[str] = None

    def feed(self, part: bytes) -> List[ServerEvent]:
        events: List[ServerEvent] = []
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            event = self._take(line)
            if event is not None:
                events.append(event)
        return events

    def _take(self, line: bytes) -> Optional[ServerEvent]:
        if line:
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if name == b"event":
                self._name = value.decode()
            elif name == b"data":
                self._data.append(value)
            elif name == b"id":
                self._id = value.decode()
            return None
        if not self._data:
            return None
        event = ServerEvent(self._name, json.loads(b"\n".join(self._data)), self._id)
        self._name, self._data, self._id = "message", [], None
        return event
