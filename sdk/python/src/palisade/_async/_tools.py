"""Declared tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote

from .._models import DeclaredTool, KeptDeclaration, ToolList, ToolResult, model

if TYPE_CHECKING:
    from ._client import AsyncPalisade


class AsyncTools:
    """Tools that are declared with a name, an input, a command and a policy (docs/tools.md). Each call has a sandbox of its own."""

    def __init__(self, client: AsyncPalisade) -> None:
        self._client = client

    async def list(self, *, project: Optional[str] = None) -> List[DeclaredTool]:
        """The tools that count: the user's own, and those of the project that are trusted."""
        found = await self._client.request("GET", "/v1/tools", params=_without_none({"project": project}))
        return model(ToolList, found.json()).tools

    async def get(self, name: str, *, project: Optional[str] = None) -> DeclaredTool:
        """A tool with its policy, and with what a person has to approve before it runs."""
        found = await self._client.request("GET", _path(name), params=_without_none({"project": project}))
        return model(DeclaredTool, found.json())

    async def declare(
        self,
        name: str,
        description: str,
        *,
        command: Optional[Sequence[Union[str, Sequence[str]]]] = None,
        builtin: Optional[str] = None,
        stdin: Optional[str] = None,
        input: Optional[Mapping[str, Any]] = None,
        level: Optional[str] = None,
        limits: Optional[Mapping[str, Any]] = None,
        patterns: Optional[Mapping[str, Any]] = None,
        policy: Optional[Mapping[str, Any]] = None,
        replace: bool = False,
    ) -> str:
        """Keeps a declaration as the user's own, and says in which file. It approves nothing: a person does."""
        declaration = _without_none(
            {
                "name": name,
                "description": description,
                "command": command,
                "builtin": builtin,
                "stdin": stdin,
                "input": input,
                "level": level,
                "limits": limits,
                "patterns": patterns,
                "policy": policy,
            }
        )
        parameters = {"replace": "true"} if replace else {}
        made = await self._client.request("POST", "/v1/tools", params=parameters, json=declaration)
        return model(KeptDeclaration, made.json()).file

    async def remove(self, name: str) -> None:
        """Removes a declaration of the user's own."""
        await self._client.request("DELETE", _path(name))

    async def run(
        self, name: str, input: Optional[Mapping[str, Any]] = None, *, project: Optional[str] = None
    ) -> ToolResult:
        """Runs a tool once. What it ends with is in the result; an error is raised only if it did not run."""
        call = _without_none({"input": dict(input or {}), "project": project})
        answer = await self._client.request("POST", f"{_path(name)}/run", json=call)
        return model(ToolResult, answer.json())


def _path(name: str) -> str:
    return f"/v1/tools/{quote(name, safe='')}"


def _without_none(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
