"""Files of a sandbox: the very ones that its commands see, under the same rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, AsyncIterator, Dict, List, Literal, Optional, Union, overload

from .._errors import NotFound, error_of
from .._models import ChangeDocument, Entries, FileDocument, model
from ._client import query

if TYPE_CHECKING:
    from ._client import AsyncPalisade


class AsyncFiles:
    """`sandbox.files`. A path counts from the sandbox's project, unless it begins with a slash."""

    def __init__(self, client: AsyncPalisade, sandbox: str) -> None:
        self._client = client
        self._path = f"/v1/sandboxes/{sandbox}/files"

    @overload
    async def read(
        self, path: str, *, format: Literal["text"] = "text", offset: int = 0, length: Optional[int] = None
    ) -> str: ...

    @overload
    async def read(
        self, path: str, *, format: Literal["bytes"], offset: int = 0, length: Optional[int] = None
    ) -> bytes: ...

    async def read(
        self, path: str, *, format: Literal["text", "bytes"] = "text", offset: int = 0, length: Optional[int] = None
    ) -> Union[str, bytes]:
        """Reads a file, or `length` bytes of it from `offset` on."""
        headers: Dict[str, str] = {}
        if offset or length is not None:
            last = "" if length is None else str(offset + length - 1)
            headers["Range"] = f"bytes={offset}-{last}"
        if length == 0:
            return "" if format == "text" else b""
        answer = await self._client.request("GET", f"{self._path}/content", params={"path": path}, headers=headers)
        return answer.content.decode(errors="replace") if format == "text" else answer.content

    async def write(
        self,
        path: str,
        data: Union[str, bytes],
        *,
        if_exists: Literal["replace", "refuse", "append"] = "replace",
        make_parents: bool = True,
        mode: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> FileDocument:
        """Writes a file. Until all of it is there it stays as it was.

        `if_match` is an etag: only that version is replaced. `mode` is for a new file, in octal.
        """
        answer = await self._client.request(
            "PUT",
            f"{self._path}/content",
            params=query(path=path, ifExists=if_exists, makeParents=make_parents, mode=mode),
            content=data.encode() if isinstance(data, str) else data,
            headers={"Content-Type": "application/octet-stream", **({"If-Match": if_match} if if_match else {})},
            repeatable=if_exists == "replace" and if_match is None,
        )
        return model(FileDocument, answer.json())

    async def list(self, path: str = ".", *, depth: int = 1) -> List[FileDocument]:
        """Lists a directory, with the directories below it up to `depth`. Links are not followed."""
        parameters = query(path=path, depth=depth)
        return model(Entries, (await self._client.request("GET", f"{self._path}/entries", params=parameters)).json()).entries

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path, follow_links=True)
        except NotFound:
            return False
        return True

    async def stat(self, path: str, *, follow_links: bool = False) -> FileDocument:
        """What is at a path."""
        parameters = query(path=path, followLinks=follow_links)
        return model(FileDocument, (await self._client.request("GET", self._path, params=parameters)).json())

    async def rename(self, old: str, new: str, *, replace: bool = False) -> FileDocument:
        """Renames a file or a directory."""
        body = {"from": old, "to": new, "replace": replace}
        return model(FileDocument, (await self._client.request("POST", f"{self._path}/rename", json=body)).json())

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file, or with `recursive` a directory with what is in it."""
        await self._client.request("DELETE", self._path, params=query(path=path, recursive=recursive))

    async def make_dir(self, path: str, *, make_parents: bool = True) -> FileDocument:
        """Makes a directory."""
        body = {"path": path, "makeParents": make_parents}
        return model(FileDocument, (await self._client.request("POST", f"{self._path}/directories", json=body)).json())

    async def watch(self, path: str = ".", *, recursive: bool = False) -> AsyncIterator[Optional[ChangeDocument]]:
        """Follows what happens in a directory. The first item is None: from then on nothing is missed."""
        parameters = query(path=path, recursive=recursive)
        async for event in self._client.events(f"{self._path}/watch", params=parameters):
            if event.name == "watching":
                yield None
            elif event.name == "change":
                yield model(ChangeDocument, event.data)
            elif event.name == "problem":
                raise error_of(500, event.data)
