"""Commands of a sandbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Iterator, Callable, Dict, List, Mapping, Optional, Sequence, Union, overload

from typing import Literal

from .._errors import CommandFailed, CommandTimeout, ConnectionFailed, ProblemError, error_of
from .._models import Command, CommandList, CommandResult, OutputPart, Size, Written, model

if TYPE_CHECKING:
    from ._client import Palisade

OnOutput = Callable[[str], Any]


class CommandHandle:
    """A command in the background. It outlives this program and the server."""

    def __init__(self, client: Palisade, sandbox: str, number: int) -> None:
        self._client = client
        self._path = f"/v1/sandboxes/{sandbox}/commands/{number}"
        #: Counted from 1 in each sandbox.
        self.number = number
        self._end: Optional[Command] = None

    def info(self) -> Command:
        """The command as it is now."""
        return model(Command, (self._client.request("GET", self._path)).json())

    def output(
        self, *, since: int = 0, follow: bool = True, deadline: Optional[float] = None
    ) -> Iterator[OutputPart]:
        """What it wrote and writes, from a byte on, until it has ended.

        If the server is ended meanwhile, this goes on at the next one from the byte after the last.
        """
        parameters = {"since": since, "follow": "true" if follow else "false"}
        while True:
            stream = self._client.events(f"{self._path}/output", params=parameters, reconnect=True, deadline=deadline)
            for event in stream:
                if event.name == "output":
                    part = model(OutputPart, event.data)
                    parameters["since"] = part.next
                    yield part
                elif event.name == "dropped":
                    parameters["since"] = event.data["to"]
                elif event.name == "end":
                    self._end = model(Command, event.data)
                    return
                elif event.name == "problem":
                    raise error_of(500, event.data)
            if not follow or (deadline is not None and time.monotonic() >= deadline):
                return
            # The server was ended in order, and the command goes on.
            if (self.info()).state != "running":
                follow, parameters["follow"] = False, "false"

    def __iter__(self) -> Iterator[OutputPart]:
        return self.output()

    def wait(
        self,
        *,
        on_stdout: Optional[OnOutput] = None,
        on_stderr: Optional[OnOutput] = None,
        timeout: Optional[float] = None,
        check: bool = False,
    ) -> CommandResult:
        """Waits for its end, and says what it wrote. CommandTimeout after `timeout` seconds; the command goes on then."""
        began = time.monotonic()
        deadline = None if timeout is None else began + timeout
        written = {"stdout": b"", "stderr": b""}
        told = {"stdout": on_stdout, "stderr": on_stderr}
        for part in self.output(deadline=deadline):
            written[part.stream] += part.bytes
            callback = told[part.stream]
            if callback is not None:
                callback(part.text)
        end = self._end
        if end is None:
            end = self.info()
        if end.state == "running":
            raise CommandTimeout(f"the command has not ended after {timeout} seconds")
        stdout, stderr = written_of(written["stdout"]), written_of(written["stderr"])
        result = CommandResult(
            number=self.number,
            exit_code=end.exit_code if end.exit_code is not None else -1,
            timed_out=False,
            stdout=stdout,
            stderr=stderr,
            stdout_bytes=len(written["stdout"]),
            stderr_bytes=len(written["stderr"]),
            duration_ms=int((time.monotonic() - began) * 1000),
            signal=end.signal,
        )
        if check and result.exit_code != 0:
            raise CommandFailed(result)
        return result

    def send_stdin(self, data: Union[str, bytes]) -> None:
        """Sends it what it reads, 64 KiB at most."""
        written = written_of(data.encode() if isinstance(data, str) else data)
        self._post("stdin", {"data": written.data, "encoding": written.encoding})

    def close_stdin(self) -> None:
        """Nothing more comes: its input ends."""
        self._post("stdin", {"close": True})

    def send_signal(self, signal: Union[str, int]) -> None:
        """Sends its process group a signal, such as `INT`."""
        self._post("signal", {"signal": str(signal)})

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of its terminal."""
        self._post("resize", {"rows": rows, "columns": columns})

    def kill(self, *, at_once: bool = False) -> None:
        """Ends it: SIGTERM, and SIGKILL after two seconds. `at_once` begins with SIGKILL."""
        parameters = {"kill": "true" if at_once else "false"}
        self._client.request("DELETE", self._path, params=parameters, repeatable=True)

    def _post(self, what: str, body: Dict[str, Any]) -> None:
        self._client.request("POST", f"{self._path}/{what}", json=body)


class Commands:
    """`sandbox.commands`."""

    def __init__(self, client: Palisade, sandbox: str) -> None:
        self._client = client
        self._sandbox = sandbox

    @overload
    def run(
        self,
        cmd: Union[str, Sequence[str]],
        *,
        background: Literal[True],
        cwd: Optional[str] = None,
        envs: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        keep_stdin_open: bool = False,
        terminal: Optional[Size] = None,
    ) -> CommandHandle: ...

    @overload
    def run(
        self,
        cmd: Union[str, Sequence[str]],
        *,
        background: Literal[False] = False,
        on_stdout: Optional[OnOutput] = None,
        on_stderr: Optional[OnOutput] = None,
        timeout: Optional[float] = None,
        cwd: Optional[str] = None,
        envs: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        max_output_bytes: Optional[int] = None,
        check: bool = False,
    ) -> CommandResult: ...

    def run(
        self,
        cmd: Union[str, Sequence[str]],
        *,
        background: bool = False,
        on_stdout: Optional[OnOutput] = None,
        on_stderr: Optional[OnOutput] = None,
        timeout: Optional[float] = None,
        cwd: Optional[str] = None,
        envs: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        keep_stdin_open: bool = False,
        terminal: Optional[Size] = None,
        max_output_bytes: Optional[int] = None,
        check: bool = False,
    ) -> Union[CommandResult, CommandHandle]:
        """Runs a command: a text is for the shell, a list is the program and its arguments.

        The result has its exit code and both outputs. With `background` it is a handle, at once. `timeout` ends the command after so
        many seconds and raises CommandTimeout. `check` raises CommandFailed for another exit code than 0. With `on_stdout` or
        `on_stderr` you get the output as it comes; the command then goes on if this program ends.
        """
        body: Dict[str, Any] = {"argv": ["/bin/sh", "-c", cmd] if isinstance(cmd, str) else list(cmd)}
        if cwd is not None:
            body["cwd"] = cwd
        if envs is not None:
            body["environment"] = dict(envs)
        if stdin is not None:
            body["stdin"] = stdin
        if keep_stdin_open:
            body["keepStdinOpen"] = True
        if terminal is not None:
            body["terminal"] = {"rows": terminal.rows, "columns": terminal.columns}
        if background or on_stdout is not None or on_stderr is not None:
            body["separateStderr"] = terminal is None
            started = self._client.request("POST", self._path, json=body, once=True)
            handle = CommandHandle(self._client, self._sandbox, model(Command, started.json()).number)
            return handle if background else self._follow(handle, on_stdout, on_stderr, timeout, check)
        body["wait"] = True
        if timeout is not None:
            body["timeoutSeconds"] = max(1, int(timeout + 0.999))
        if max_output_bytes is not None:
            body["maxOutputBytes"] = max_output_bytes
        # It belongs to the connection: if that is lost the command is ended, and must not be started a second time.
        answer = self._client.request("POST", self._path, json=body, once=True, repeatable=False)
        result = model(CommandResult, answer.json())
        if result.timed_out:
            raise CommandTimeout(f"the command was ended after {timeout} seconds", result)
        if check and result.exit_code != 0:
            raise CommandFailed(result)
        return result

    def _follow(
        self,
        handle: CommandHandle,
        on_stdout: Optional[OnOutput],
        on_stderr: Optional[OnOutput],
        timeout: Optional[float],
        check: bool,
    ) -> CommandResult:
        try:
            return handle.wait(on_stdout=on_stdout, on_stderr=on_stderr, timeout=timeout, check=check)
        except CommandFailed:
            raise
        except BaseException:
            try:
                handle.kill()
            except (ConnectionFailed, ProblemError):
                # The first error is the one to tell.
                pass
            raise

    def list(self) -> List[Command]:
        """The commands that run, and the last ones of the background."""
        return model(CommandList, (self._client.request("GET", self._path)).json()).commands

    def connect(self, number: int) -> CommandHandle:
        """The command with this number, started by whomever."""
        handle = CommandHandle(self._client, self._sandbox, number)
        handle.info()
        return handle

    def kill(self, number: int, *, at_once: bool = False) -> None:
        """Ends the command with this number."""
        CommandHandle(self._client, self._sandbox, number).kill(at_once=at_once)

    @property
    def _path(self) -> str:
        return f"/v1/sandboxes/{self._sandbox}/commands"


def written_of(data: bytes) -> Written:
    import base64

    try:
        return Written(data.decode(), "text")
    except UnicodeDecodeError:
        return Written(base64.b64encode(data).decode(), "base64")
