"""Waiting, in both worlds, and how long."""

from __future__ import annotations

import time

import anyio

#: Seconds before each repetition of a request.
RETRIES = (0.1, 0.3, 0.9)
#: How long a stream that was cut off is tried again before it is given up.
RECONNECT_SECONDS = 30.0
#: How long a request that is carried out for an earlier attempt is waited for.
IN_PROGRESS_SECONDS = 120.0
#: The service says at least every 15 seconds that it is there.
SILENCE_SECONDS = 60.0


async def pause_async(seconds: float) -> None:
    await anyio.sleep(seconds)


def pause(seconds: float) -> None:
    time.sleep(seconds)
