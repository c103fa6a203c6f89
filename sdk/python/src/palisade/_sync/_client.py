"""A connection to the service, and what is not about one sandbox."""

from __future__ import annotations

import time
import uuid
from types import TracebackType
from typing import Any, Iterator, Dict, List, Mapping, Optional, Sequence, Type, Union

import httpx

from .._address import find
from .._errors import ConnectionFailed, InProgress, error_of
from .._events import EventParser, ServerEvent
from .._models import AuditLevel, AuditPage, AuditRecord, CommandResult, SandboxUsage, UsageList, model
from .._pause import IN_PROGRESS_SECONDS, RECONNECT_SECONDS, RETRIES, SILENCE_SECONDS, pause
from ._approvals import Approvals
from ._recordings import Recordings
from ._tools import Tools


class Palisade:
    """A connection to `sandbox serve`.

    To the UNIX socket of this user by default, or to `url` (or `PALISADE_URL`) with `token` (or `PALISADE_TOKEN`). `verify` is a
    file with certificates for a server with a certificate of its own.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        socket: Optional[str] = None,
        verify: Any = True,
    ) -> None:
        self._address = find(url, token, socket)
        headers = {"Authorization": f"Bearer {self._address.token}"} if self._address.token else {}
        transport = httpx.HTTPTransport(uds=self._address.socket, verify=verify)
        self._http = httpx.Client(
            base_url=self._address.base_url,
            headers=headers,
            transport=transport,
            timeout=httpx.Timeout(SILENCE_SECONDS, read=None),
            trust_env=False,
        )
        #: Questions of all sandboxes.
        self.approvals = Approvals(self)
        #: Recordings of terminals, of all sandboxes and runs.
        self.recordings = Recordings(self)
        #: Declared tools.
        self.tools = Tools(self)

    def close(self) -> None:
        """Ends the connection. Sandboxes stay."""
        self._http.close()

    def __enter__(self) -> Palisade:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def healthz(self) -> bool:
        """Whether the service is there."""
        return (self.request("GET", "/healthz")).status_code == 200

    def readyz(self) -> bool:
        """Whether it can do its work; a problem says why not."""
        return (self.request("GET", "/readyz")).status_code == 200

    def metrics(self) -> str:
        """Counters, as Prometheus reads them."""
        return (self.request("GET", "/metrics")).text

    def document(self) -> Dict[str, Any]:
        """The description of the service (OpenAPI 3.1)."""
        found: Dict[str, Any] = (self.request("GET", "/v1/openapi.json")).json()
        return found

    def usage(self) -> List[SandboxUsage]:
        """What sandboxes use that run, also those of `sandbox run`, oldest first. Ask twice to know what is used now.

        A sandbox is among them a moment after its start.
        """
        return model(UsageList, (self.request("GET", "/v1/usage")).json()).sandboxes

    def run(
        self,
        command: Union[str, Sequence[str]],
        *,
        sandbox: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        cwd: Optional[str] = None,
        envs: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        max_output_bytes: Optional[int] = None,
    ) -> CommandResult:
        """Runs a command in a sandbox of its own, of which nothing is left: a text is for the shell, a list is the program and its arguments.

        `sandbox` has the fields of a new sandbox as the document spells them, such as `presets` and `settings`. `timeout` ends the command
        after so many seconds; the result says so (`timed_out`).
        """
        new: Dict[str, Any] = {"argv": ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)}
        if cwd is not None:
            new["cwd"] = cwd
        if envs is not None:
            new["environment"] = dict(envs)
        if stdin is not None:
            new["stdin"] = stdin
        if timeout is not None:
            new["timeoutSeconds"] = max(1, int(timeout + 0.999))
        if max_output_bytes is not None:
            new["maxOutputBytes"] = max_output_bytes
        body = {"command": new, "sandbox": dict(sandbox or {})}
        # It belongs to the connection: if that is lost the command is ended, and must not be started a second time.
        answer = self.request("POST", "/v1/runs", json=body, once=True, repeatable=False)
        return model(CommandResult, answer.json())

    def audit(
        self,
        *,
        sandbox: Optional[str] = None,
        since: Optional[str] = None,
        event: Optional[str] = None,
        level: Optional[AuditLevel] = None,
        limit: Optional[int] = None,
    ) -> AuditPage:
        """Reads the audit log. `since` is a time, an age such as `10m`, or the number of a record."""
        parameters = query(sandbox=sandbox, since=since, event=event, level=lower(level), limit=limit)
        return model(AuditPage, (self.request("GET", "/v1/audit", params=parameters)).json())

    def follow_audit(
        self,
        *,
        sandbox: Optional[str] = None,
        since: Optional[str] = None,
        event: Optional[str] = None,
        level: Optional[AuditLevel] = None,
    ) -> Iterator[AuditRecord]:
        """Follows the audit log; with `sandbox` until that one has ended."""
        parameters = query(sandbox=sandbox, since=since, event=event, level=lower(level))
        for found in self.events("/v1/audit/stream", params=parameters, reconnect=True):
            if found.name == "problem":
                raise error_of(500, found.data)
            yield model(AuditRecord, found.data)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        content: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        once: bool = False,
        repeatable: Optional[bool] = None,
    ) -> httpx.Response:
        """Sends a request. Errors are raised by the type of the problem.

        `once` gives it an `Idempotency-Key`, so that it is carried out once however often it arrives. A request that is not
        `repeatable` is sent again only if it cannot have arrived.
        """
        sent = dict(headers or {})
        if once:
            sent["Idempotency-Key"] = str(uuid.uuid4())
        if repeatable is None:
            repeatable = once or method == "GET"
        waited = 0.0
        attempt = 0
        while True:
            delay = RETRIES[attempt] if attempt < len(RETRIES) else None
            attempt += 1
            try:
                response = self._http.request(
                    method, path, params=params, json=json, content=content, headers=sent
                )
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if delay is None:
                    raise self._unreachable(error) from error
            except httpx.TransportError as error:
                if delay is None or not repeatable:
                    raise ConnectionFailed(f"the connection to {self._address} was lost: {error}") from error
            else:
                if response.is_success:
                    return response
                problem = error_of(response.status_code, body_of(response))
                if isinstance(problem, InProgress) and attempt > 1 and waited < IN_PROGRESS_SECONDS:
                    # An earlier attempt of ours is being carried out.
                    delay, attempt = 0.2, attempt - 1
                    waited += delay
                elif response.status_code != 503 or delay is None:
                    raise problem
            pause(delay)

    def events(
        self,
        path: str,
        *,
        params: Optional[Mapping[str, Any]] = None,
        reconnect: bool = False,
        deadline: Optional[float] = None,
    ) -> Iterator[ServerEvent]:
        """The events of a stream, until a moment of `time.monotonic()` if there is a `deadline`.

        With `reconnect`, one that breaks off is opened again from the id of its last event, for half a minute at most.
        """
        last: Optional[str] = None
        tried_since: Optional[float] = None
        while True:
            headers = {"Last-Event-ID": last} if last is not None else {}
            silence = SILENCE_SECONDS if deadline is None else min(SILENCE_SECONDS, deadline - time.monotonic())
            if silence <= 0:
                return
            timeout = httpx.Timeout(SILENCE_SECONDS, read=silence)
            cause: Optional[Exception] = None
            try:
                with self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as response:
                    if not response.is_success:
                        response.read()
                        raise error_of(response.status_code, body_of(response))
                    parser = EventParser()
                    for part in response.iter_bytes():
                        for event in parser.feed(part):
                            tried_since = None
                            last = event.id if event.id is not None else last
                            yield event
                        if deadline is not None and time.monotonic() > deadline:
                            return
                # It has ended in order: everything was said.
                return
            except httpx.TransportError as error:
                cause = error
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return
            tried_since = now if tried_since is None else tried_since
            if not reconnect or now - tried_since > RECONNECT_SECONDS:
                if isinstance(cause, httpx.ConnectError):
                    raise self._unreachable(cause) from cause
                raise ConnectionFailed(f"the connection to {self._address} was lost: {cause!r}") from cause
            pause(RETRIES[0])

    def _unreachable(self, error: Exception) -> ConnectionFailed:
        return ConnectionFailed(f"nobody listens at {self._address}: start `sandbox serve` ({error})")


def body_of(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def lower(level: Optional[str]) -> Optional[str]:
    return level.lower() if level is not None else None


def query(**parameters: Any) -> Dict[str, Any]:
    """What was given, in the spelling of a query."""
    spelled = {True: "true", False: "false"}
    given = {name: value for name, value in parameters.items() if value is not None}
    return {name: spelled[value] if isinstance(value, bool) else value for name, value in given.items()}
