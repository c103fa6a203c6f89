"""Sandboxes of Palisade (`sandbox serve`) from Python.

    from palisade import Sandbox

    with Sandbox.create(transaction="overlay") as sandbox:
        print(sandbox.commands.run("make test").stdout)
        print(sandbox.patch())
        sandbox.apply()
"""

from ._async._approvals import AsyncApprovals
from ._async._client import AsyncPalisade
from ._async._commands import AsyncCommandHandle, AsyncCommands
from ._async._files import AsyncFiles
from ._async._recordings import AsyncRecordings
from ._async._sandbox import AsyncSandbox
from ._async._tools import AsyncTools
from ._errors import (
    Busy,
    Cancelled,
    ChangedMeanwhile,
    CommandFailed,
    CommandTimeout,
    ConflictError,
    ConnectionFailed,
    Failed,
    InProgress,
    Interrupted,
    InvalidRequest,
    NameTaken,
    NotAllowed,
    NotAuthorised,
    NotFound,
    PalisadeError,
    ProblemError,
    TimedOut,
    TooLarge,
)
from ._models import (
    Applied,
    ApprovalEvent,
    ApprovalList,
    AskPeople,
    AuditLevel,
    AuditPage,
    AuditRecord,
    Change,
    ChangeDocument,
    ChangeSet,
    Checkpoint,
    Command,
    CommandResult,
    Conflict,
    Decision,
    DeclaredTool,
    FileDocument,
    Held,
    Lifetime,
    OnConflict,
    OutputPart,
    Problem,
    Question,
    Recording,
    Refused,
    RolledBack,
    SandboxInfo,
    SandboxUsage,
    Scope,
    Size,
    Store,
    ToolResult,
    ToolViolation,
    Transaction,
    UsageLimit,
    Written,
)
from ._sync._approvals import Approvals
from ._sync._client import Palisade
from ._sync._commands import CommandHandle, Commands
from ._sync._files import Files
from ._sync._recordings import Recordings
from ._sync._sandbox import Sandbox
from ._sync._tools import Tools

__all__ = [
    "Applied",
    "ApprovalEvent",
    "ApprovalList",
    "Approvals",
    "AskPeople",
    "AsyncApprovals",
    "AsyncCommandHandle",
    "AsyncCommands",
    "AsyncFiles",
    "AsyncPalisade",
    "AsyncRecordings",
    "AsyncSandbox",
    "AsyncTools",
    "AuditLevel",
    "AuditPage",
    "AuditRecord",
    "Busy",
    "Cancelled",
    "Change",
    "ChangeDocument",
    "ChangeSet",
    "ChangedMeanwhile",
    "Checkpoint",
    "Command",
    "CommandFailed",
    "CommandHandle",
    "CommandResult",
    "CommandTimeout",
    "Commands",
    "Conflict",
    "ConflictError",
    "ConnectionFailed",
    "Decision",
    "DeclaredTool",
    "Failed",
    "FileDocument",
    "Files",
    "Held",
    "InProgress",
    "Interrupted",
    "InvalidRequest",
    "Lifetime",
    "NameTaken",
    "NotAllowed",
    "NotAuthorised",
    "NotFound",
    "OnConflict",
    "OutputPart",
    "Palisade",
    "PalisadeError",
    "Problem",
    "ProblemError",
    "Question",
    "Recording",
    "Recordings",
    "Refused",
    "RolledBack",
    "Sandbox",
    "SandboxInfo",
    "SandboxUsage",
    "Scope",
    "Size",
    "Store",
    "TimedOut",
    "TooLarge",
    "ToolResult",
    "ToolViolation",
    "Tools",
    "Transaction",
    "UsageLimit",
    "Written",
]
