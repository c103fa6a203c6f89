"""A sandbox."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type
from urllib.parse import quote

from .._errors import ConflictError
from .._models import (
    Applied,
    ApplyResult,
    AskPeople,
    ChangeSet,
    Checkpoint,
    CheckpointList,
    Held,
    OnConflict,
    RollbackResult,
    SandboxInfo,
    SandboxList,
    Transaction,
    decode,
    model,
)
from ._approvals import AsyncApprovals
from ._client import AsyncPalisade, query
from ._commands import AsyncCommands
from ._files import AsyncFiles


class AsyncSandbox:
    """A sandbox. Make one with `create`, or find one with `connect`.

    As a context manager it is ended at the end. Changes that wait to be applied are kept then: `sandbox diff` shows them.
    """

    def __init__(self, client: AsyncPalisade, info: SandboxInfo, *, owns_client: bool = False) -> None:
        self._client = client
        self._owns_client = owns_client
        self._path = f"/v1/sandboxes/{info.id}"
        #: As it was when it was made or found.
        self.info = info
        self.id = info.id
        self.name = info.name
        self.commands = AsyncCommands(client, info.id)
        self.files = AsyncFiles(client, info.id)
        self.approvals = AsyncApprovals(client, info.id)

    @classmethod
    async def create(
        cls,
        *,
        name: Optional[str] = None,
        project: Optional[str] = None,
        presets: Sequence[str] = (),
        settings: Optional[Mapping[str, Any]] = None,
        transaction: Optional[Transaction] = None,
        timeout: Optional[int] = None,
        idle_timeout: Optional[int] = None,
        ask: Optional[AskPeople] = None,
        client: Optional[AsyncPalisade] = None,
    ) -> AsyncSandbox:
        """Makes a sandbox.

        `project` is the directory to work in, `presets` and `settings` are what it may do (docs/policy.md). With `transaction` the project
        stays as it is until `apply`. `timeout` and `idle_timeout` are seconds after which it ends by itself.
        """
        wanted: Dict[str, Any] = {
            "name": name,
            "project": project,
            "presets": list(presets),
            "settings": dict(settings or {}),
            "transaction": transaction,
            "timeToLiveSeconds": timeout,
            "idleTimeToLiveSeconds": idle_timeout,
            "ask": ask,
        }
        body = {key: value for key, value in wanted.items() if value is not None}
        used, owns = (AsyncPalisade(), True) if client is None else (client, False)
        try:
            made = await used.request("POST", "/v1/sandboxes", json=body, once=True)
        except BaseException:
            if owns:
                await used.aclose()
            raise
        return cls(used, model(SandboxInfo, made.json()), owns_client=owns)

    @classmethod
    async def connect(cls, id: str, *, client: Optional[AsyncPalisade] = None) -> AsyncSandbox:
        """The sandbox with this id or name."""
        used, owns = (AsyncPalisade(), True) if client is None else (client, False)
        try:
            found = await used.request("GET", f"/v1/sandboxes/{quote(id, safe='')}")
        except BaseException:
            if owns:
                await used.aclose()
            raise
        return cls(used, model(SandboxInfo, found.json()), owns_client=owns)

    @classmethod
    async def list(cls, *, all: bool = False, client: Optional[AsyncPalisade] = None) -> List[SandboxInfo]:
        """The sandboxes that run, oldest first; with `all` also those that are over."""
        used, owns = (AsyncPalisade(), True) if client is None else (client, False)
        found: List[SandboxInfo] = []
        try:
            after: Optional[str] = None
            while True:
                parameters = query(all=all, after=after, limit=1000)
                page = model(SandboxList, (await used.request("GET", "/v1/sandboxes", params=parameters)).json())
                found.extend(page.sandboxes)
                after = page.next
                if after is None:
                    return found
        finally:
            if owns:
                await used.aclose()

    async def get_info(self) -> SandboxInfo:
        """The sandbox as it is now, with what it does."""
        return model(SandboxInfo, (await self._client.request("GET", self._path)).json())

    async def is_running(self) -> bool:
        return (await self.get_info()).is_running

    async def set_timeout(self, seconds: int) -> SandboxInfo:
        """It ends so many seconds from now."""
        answer = await self._client.request("POST", f"{self._path}/extend", json={"seconds": seconds}, repeatable=True)
        return model(SandboxInfo, answer.json())

    extend = set_timeout

    async def kill(self, *, discard: bool = False, at_once: bool = False) -> None:
        """Ends and removes it.

        If changes wait, it is ended and kept, and ConflictError says so; `discard` removes them, too. `at_once` asks no command first.
        """
        await self._client.request("DELETE", self._path, params=query(kill=at_once, discard=discard))

    async def diff(
        self, *, path: Optional[str] = None, from_: Optional[int] = None, to: Optional[int] = None
    ) -> ChangeSet:
        """What it changed in its project, or between two checkpoints."""
        parameters: Dict[str, Any] = {**query(path=path, to=to), **({} if from_ is None else {"from": from_})}
        return model(ChangeSet, (await self._client.request("GET", f"{self._path}/diff", params=parameters)).json())

    async def patch(
        self, *, path: Optional[str] = None, from_: Optional[int] = None, to: Optional[int] = None
    ) -> str:
        """The same as `git diff` shows it."""
        parameters = {**query(path=path, to=to, format="patch"), **({} if from_ is None else {"from": from_})}
        return (await self._client.request("GET", f"{self._path}/diff", params=parameters)).text

    async def apply(
        self,
        paths: Sequence[str] = (),
        *,
        on_conflict: OnConflict = "refuse",
        skip_refused: bool = False,
        checkpoint: Optional[int] = None,
    ) -> Applied:
        """Applies what it changed to the project: all or nothing. ConflictError has in `held` what stands in the way.

        With `checkpoint`, that state is applied, whatever the sandbox has changed since."""
        done = await self._apply(paths, on_conflict, skip_refused, checkpoint, dry_run=False)
        if not isinstance(done, Applied):
            raise ValueError("the service said what stands in the way, and not what it applied")
        return done

    async def preview_apply(
        self,
        paths: Sequence[str] = (),
        *,
        on_conflict: OnConflict = "refuse",
        skip_refused: bool = False,
        checkpoint: Optional[int] = None,
    ) -> Held:
        """What would stand in the way of an apply; nothing is applied."""
        try:
            done = await self._apply(paths, on_conflict, skip_refused, checkpoint, dry_run=True)
        except ConflictError as error:
            if error.held is None:
                raise
            return error.held
        if not isinstance(done, Held):
            raise ValueError("the service applied something, and was asked not to")
        return done

    async def _apply(
        self,
        paths: Sequence[str],
        on_conflict: OnConflict,
        skip_refused: bool,
        checkpoint: Optional[int],
        *,
        dry_run: bool,
    ) -> ApplyResult:
        body: Dict[str, Any] = {
            "paths": list(paths),
            "onConflict": on_conflict,
            "skipRefused": skip_refused,
            "dryRun": dry_run,
        }
        if checkpoint is not None:
            body["checkpoint"] = checkpoint
        answer = await self._client.request("POST", f"{self._path}/apply", json=body)
        result: ApplyResult = decode(ApplyResult, answer.json())
        return result

    async def discard(self) -> None:
        """Forgets what it changed. It has to be over; `kill(discard=True)` does both."""
        await self._client.request("POST", f"{self._path}/discard")

    async def checkpoint(self, message: Optional[str] = None, *, for_review: bool = False) -> Checkpoint:
        """Keeps the present state of its project.

        With `for_review` only the last four are kept: for who asks a person, and then applies it."""
        body: Dict[str, Any] = {"forReview": for_review}
        if message is not None:
            body["message"] = message
        return model(Checkpoint, (await self._client.request("POST", f"{self._path}/checkpoints", json=body)).json())

    async def checkpoints(self) -> List[Checkpoint]:
        """The kept states, oldest first."""
        return model(CheckpointList, (await self._client.request("GET", f"{self._path}/checkpoints")).json()).checkpoints

    async def rollback(self, number: int, *, kill: bool = False, dry_run: bool = False) -> RollbackResult:
        """Brings a kept state back; 0 is the project without changes. The present state is kept first.

        With `dry_run` it is what would change.
        """
        body = {"kill": kill, "dryRun": dry_run}
        answer = await self._client.request("POST", f"{self._path}/checkpoints/{number}/rollback", json=body)
        result: RollbackResult = decode(RollbackResult, answer.json())
        return result

    async def fork(self, *, at: Optional[int] = None, name: Optional[str] = None) -> AsyncSandbox:
        """A second sandbox from its state, or from a checkpoint."""
        wanted = {"at": at, "name": name}
        body = {key: value for key, value in wanted.items() if value is not None}
        made = await self._client.request("POST", f"{self._path}/fork", json=body, once=True)
        return AsyncSandbox(self._client, model(SandboxInfo, made.json()))

    async def aclose(self) -> None:
        """Ends the connection. The sandbox stays."""
        if self._owns_client:
            await self._client.aclose()

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        try:
            await self.kill()
        except ConflictError:
            # It has ended, and its changes wait.
            pass
        finally:
            await self.aclose()
