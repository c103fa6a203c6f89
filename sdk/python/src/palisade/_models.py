"""What the service sends and takes, as it is in docs/openapi.json: a class for each schema, a field for each property.

Names are those of the document in Python's spelling. Fields that a newer server adds are ignored.
"""

from __future__ import annotations

import base64
import dataclasses
import re
import sys
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Dict, List, Optional, Type, TypeVar, Union, get_args, get_origin, get_type_hints

if sys.version_info >= (3, 10):
    from types import UnionType
else:  # pragma: no cover
    UnionType = None

from typing import Literal

Json = Any
T = TypeVar("T")

AskPeople = Literal["always", "never"]
AuditLevel = Literal["INFO", "WARN", "ERROR", "CRITICAL"]
ChangeKind = Literal[
    "added", "modified", "deleted", "typeChanged", "modeChanged", "attributesChanged", "touched", "linked"
]
ChangeName = Literal["created", "written", "removed", "renamedFrom", "renamedTo", "attributes", "overflow"]
CheckpointReason = Literal["asked", "beforeCommand", "beforeRollback", "forReview"]
CommandState = Literal["running", "exited", "signalled", "failed", "lost"]
ConflictReason = Literal["changedOnHost", "deletedOnHost", "noBase", "cannotMerge"]
Decision = Literal["allow", "deny"]
Encoding = Literal["text", "base64"]
EntryKind = Literal["file", "directory", "link", "fifo", "socket", "device"]
FileKind = Literal["file", "directory", "link", "other"]
InputEncoding = Literal["text", "base64"]
Lifetime = Literal["once", "session", "always"]
OnConflict = Literal["refuse", "force", "ours", "merge"]
ProblemKind = Literal["resource", "security", "validation", "cancelled", "timeout", "initialisation"]
Scope = Literal["file", "directory", "directory-to-run", "private-copy"]
Store = Literal["user", "project", "org"]
Stream = Literal["stdout", "stderr"]
ToolOrigin = Literal["named", "user", "project"]
ToolViolationKind = Literal[
    "access", "protectedWrite", "execution", "systemCall", "network", "limit", "escape"
]
#: An argument, or several that are left out together.
ToolWord = Union[str, List[str]]
Transaction = Literal["overlay", "copy"]


@dataclass(frozen=True)
class Written:
    """Bytes: text where they are UTF-8, base64 where they are not. `str()` gives the text."""

    data: str
    encoding: Encoding

    @property
    def bytes(self) -> bytes:
        return base64.b64decode(self.data) if self.encoding == "base64" else self.data.encode()

    def __str__(self) -> str:
        return self.data if self.encoding == "text" else self.bytes.decode(errors="replace")


@dataclass(frozen=True)
class SandboxStatus:
    running_commands: int
    questions: int
    is_ending: bool
    idle_ms: Optional[int] = None
    expires_in_ms: Optional[int] = None
    idle_expires_in_ms: Optional[int] = None


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox, as the service shows it (`Sandbox` in the document)."""

    id: str
    state: str
    is_running: bool
    created_at: datetime
    project: str
    presets: List[str]
    has_transaction: bool
    name: Optional[str] = None
    ended_at: Optional[datetime] = None
    level: Optional[str] = None
    time_to_live_seconds: Optional[int] = None
    idle_time_to_live_seconds: Optional[int] = None
    exit_code: Optional[int] = None
    end_reason: Optional[str] = None
    status: Optional[SandboxStatus] = None


@dataclass(frozen=True)
class SandboxList:
    sandboxes: List[SandboxInfo]
    next: Optional[str] = None


@dataclass(frozen=True)
class Command:
    """A command of a sandbox, as the service shows it."""

    number: int
    state: CommandState
    command: str
    is_held: bool
    has_terminal: bool
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    message: Optional[str] = None
    started_at: Optional[datetime] = None
    ended_at: Optional[datetime] = None
    running_ms: Optional[int] = None
    output_bytes: Optional[int] = None


@dataclass(frozen=True)
class CommandList:
    commands: List[Command]


@dataclass(frozen=True)
class CommandResult:
    """How a command ended that a request waited for."""

    number: int
    exit_code: int
    timed_out: bool
    stdout: Written
    stderr: Written
    stdout_bytes: int
    stderr_bytes: int
    duration_ms: int
    signal: Optional[int] = None


@dataclass(frozen=True)
class OutputPart:
    """A part of what a command wrote."""

    cursor: int
    next: int
    stream: Stream
    data: str
    encoding: Encoding

    @property
    def bytes(self) -> bytes:
        return Written(self.data, self.encoding).bytes

    @property
    def text(self) -> str:
        return str(Written(self.data, self.encoding))


@dataclass(frozen=True)
class Size:
    """Of a terminal."""

    rows: int
    columns: int


@dataclass(frozen=True)
class FileDocument:
    path: Written
    type: FileKind
    size: int
    mode: str
    uid: int
    gid: int
    modified: float
    etag: str
    target: Optional[Written] = None


@dataclass(frozen=True)
class Entries:
    entries: List[FileDocument]


@dataclass(frozen=True)
class ChangeDocument:
    """Something that happened in a directory that is watched."""

    change: ChangeName
    path: Written


@dataclass(frozen=True)
class FileTime:
    seconds: int
    nanoseconds: int


@dataclass(frozen=True)
class Entry:
    kind: EntryKind
    mode: int
    size: int
    modified: FileTime
    target: Optional[str] = None


@dataclass(frozen=True)
class Change:
    """One path that a sandbox changed in its project."""

    path: str
    kind: ChangeKind
    path_hex: Optional[str] = None
    old: Optional[Entry] = None
    new: Optional[Entry] = None
    hard_link_of: Optional[str] = None


@dataclass(frozen=True)
class Rename:
    from_: str
    to: str
    similarity: int


@dataclass(frozen=True)
class ChangeSet:
    changes: List[Change]
    renames: List[Rename]
    too_deep: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Objection:
    rule: str
    why: str


@dataclass(frozen=True)
class RunLater:
    """The host would run it later."""

    run_later: Objection


RefusedReason = Union[
    RunLater,
    Literal["hidden", "specialFile", "linkLeavesProject", "reservedName", "pathTooLong", "partOfItStays"],
]


@dataclass(frozen=True)
class Refused:
    path: str
    reason: RefusedReason


@dataclass(frozen=True)
class Conflict:
    path: str
    reason: ConflictReason


@dataclass(frozen=True)
class Held:
    """What stands in the way of an apply."""

    refused: List[Refused]
    conflicts: List[Conflict]


@dataclass(frozen=True)
class Applied:
    applied: List[str]
    refused: List[str]
    kept: List[str]


ApplyResult = Union[Applied, Held]


@dataclass(frozen=True)
class Checkpoint:
    number: int
    created_at: datetime
    reason: CheckpointReason
    entries: int
    bytes: int
    disk_bytes: int
    is_on_disk: bool
    message: Optional[str] = None
    until_restart_of: Optional[str] = None


@dataclass(frozen=True)
class CheckpointList:
    checkpoints: List[Checkpoint]


@dataclass(frozen=True)
class RolledBack:
    checkpoint: int
    kept_as: int


RollbackResult = Union[RolledBack, ChangeSet]


@dataclass(frozen=True)
class AskingAncestor:
    pid: int
    name: str


@dataclass(frozen=True)
class AskingProcess:
    pid: int
    exe: str
    args: List[str]
    cwd: str
    ancestors: List[AskingAncestor]


@dataclass(frozen=True)
class AskingSandbox:
    session: str
    command: str
    project: str


@dataclass(frozen=True)
class Question:
    """A question of a sandbox. Names in it were chosen by the program that asks: escape them where you show them."""

    id: int
    session: str
    address: str
    reason: str
    processes: List[AskingProcess]
    requests: List[int]
    asked_at: datetime
    path: Optional[str] = None
    path_bytes: Optional[str] = None
    host: Optional[str] = None
    port: Optional[int] = None
    op: Optional[str] = None
    access: Optional[str] = None
    act: Optional[str] = None
    is_directory: Optional[bool] = None
    is_secret: Optional[bool] = None
    is_name_only: Optional[bool] = None
    may_be_copied: Optional[bool] = None
    entry: Optional[str] = None
    new_path: Optional[str] = None
    also: List[str] = field(default_factory=list)
    directory: Optional[str] = None
    directory_bytes: Optional[str] = None
    pid: Optional[int] = None
    exe: Optional[str] = None
    cwd: Optional[str] = None
    expires_at: Optional[datetime] = None


@dataclass(frozen=True)
class ApprovalList:
    sessions: List[AskingSandbox]
    questions: List[Question]


@dataclass(frozen=True)
class ApprovalEvent:
    """Something that happened to questions: `type` is one of docs/protocol.md, and `question` is there if one was asked."""

    type: str
    session: str
    data: Dict[str, Any]
    question: Optional[Question] = None


@dataclass(frozen=True)
class AuditRecord:
    event_id: str
    sandbox_id: str
    timestamp: datetime
    level: AuditLevel
    state: str
    event: str
    seq: int
    prev: str
    hash: str
    details: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class AuditPage:
    records: List[AuditRecord]
    next: Optional[int] = None


@dataclass(frozen=True)
class UsageLimit:
    """`name` is that of the option, such as `memory`; `value` is in bytes, milliseconds, thousandths of a processor, or a count."""

    name: str
    value: int


@dataclass(frozen=True)
class SandboxUsage:
    """What a sandbox or a run of `sandbox run` uses. Counters such as `cpu_ms` only grow."""

    id: str
    is_session: bool
    command: str
    started_at: datetime
    cpu_ms: int
    memory_bytes: int
    processes: int
    threads: int
    limits: List[UsageLimit]
    read_bytes: Optional[int] = None
    written_bytes: Optional[int] = None
    status: Optional[SandboxStatus] = None


@dataclass(frozen=True)
class UsageList:
    sandboxes: List[SandboxUsage]


@dataclass(frozen=True)
class Recording:
    """A recording of a terminal. `id` is that of the sandbox or the run; a run has no `command`."""

    id: str
    columns: int
    rows: int
    bytes: int
    command: Optional[int] = None
    name: Optional[str] = None
    title: Optional[str] = None
    started_at: Optional[datetime] = None


@dataclass(frozen=True)
class RecordingList:
    recordings: List[Recording]


@dataclass(frozen=True)
class ToolPatterns:
    """What the command line of a tool has to be like."""

    max_length: int
    allowed: List[str]
    blocked: List[str]


@dataclass(frozen=True)
class DeclaredTool:
    """A tool: what it is called, takes and runs. `input` is a JSON Schema."""

    name: str
    description: str
    input: Dict[str, Any]
    patterns: ToolPatterns
    origin: ToolOrigin
    file: str
    sha256: str
    command: Optional[List[ToolWord]] = None
    builtin: Optional[str] = None
    stdin: Optional[str] = None
    needs_approval: Optional[List[str]] = None
    policy: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class IgnoredDeclaration:
    """A declaration that does not count."""

    name: str
    path: str
    why: str


@dataclass(frozen=True)
class ToolList:
    tools: List[DeclaredTool]
    ignored: List[IgnoredDeclaration]


@dataclass(frozen=True)
class KeptDeclaration:
    file: str


@dataclass(frozen=True)
class ToolViolation:
    """One thing that a tool tried and was not allowed. Names in it come from inside."""

    kind: ToolViolationKind
    subject: str
    count: int
    access: Optional[str] = None
    rule: Optional[str] = None
    detail: Optional[str] = None
    executable: Optional[str] = None


@dataclass(frozen=True)
class ToolTransaction:
    """What became of a tool's changes to the project."""

    waiting_changes: int
    applied_changes: int


@dataclass(frozen=True)
class ToolApproval:
    what: str
    reason: str


@dataclass(frozen=True)
class ToolFailure:
    """Why a tool was stopped, with its class."""

    kind: ProblemKind
    message: str
    causes: Optional[List[str]] = None


@dataclass(frozen=True)
class ToolResult:
    """The result of one call of a tool. `session_id` is the sandbox in which it ran."""

    tool: str
    session_id: str
    outcome: str
    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    violations: List[ToolViolation]
    approvals: List[ToolApproval]
    signal: Optional[int] = None
    data: Optional[Dict[str, Any]] = None
    usage: Optional[Dict[str, Any]] = None
    transaction: Optional[ToolTransaction] = None
    level: Optional[str] = None
    network: Optional[str] = None
    failure: Optional[ToolFailure] = None


@dataclass(frozen=True)
class Problem:
    """Why a request was not carried out (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    kind: ProblemKind
    causes: List[str] = field(default_factory=list)
    exit_code: Optional[int] = None
    held: Optional[Held] = None


def spelling(name: str) -> str:
    """A field of a model as it is called in JSON."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def parse_time(text: str) -> datetime:
    """RFC 3339, with more digits than Python keeps."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z", text)
    if found is None:
        return datetime.fromisoformat(text)
    digits = (found.group(2) or "")[:6].ljust(6, "0")
    return datetime.fromisoformat(f"{found.group(1)}.{digits}").replace(tzinfo=timezone.utc)


@lru_cache(maxsize=None)
def hints(model: type) -> Dict[str, Any]:
    return get_type_hints(model)


def decode(wanted: Any, value: Json) -> Any:
    """A model of what was sent. ValueError if it is not that."""
    if wanted is Any:
        return value
    origin = get_origin(wanted)
    if origin is Union or (UnionType is not None and origin is UnionType):
        problems = []
        for choice in get_args(wanted):
            try:
                return decode(choice, value)
            except ValueError as error:
                problems.append(str(error))
        raise ValueError("; ".join(problems))
    if origin is list:
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is no list")
        return [decode(get_args(wanted)[0], item) for item in value]
    if origin is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is no object")
        return value
    if origin is Literal:
        # A word of a newer server is passed on.
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is no word")
        return value
    if wanted is type(None):
        if value is not None:
            raise ValueError(f"{value!r} is not null")
        return None
    if wanted is datetime:
        return parse_time(value)
    if dataclasses.is_dataclass(wanted):
        return decode_object(wanted, value)
    if wanted is float and isinstance(value, int):
        return float(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise ValueError(f"{value!r} is no {wanted.__name__}")
    return value


def decode_object(model: Any, value: Json) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no object")
    known: Dict[str, Any] = {}
    for item in dataclasses.fields(model):
        name = spelling(item.name)
        if name in value:
            known[item.name] = decode(hints(model)[item.name], value[name])
    try:
        return model(**known)
    except TypeError as error:
        raise ValueError(f"{model.__name__}: {error}") from None


def model(wanted: Type[T], value: Json) -> T:
    result: T = decode(wanted, value)
    return result
