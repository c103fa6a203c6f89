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
from ._async._sandbox import AsyncSandbox
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
    AuditPage,
    AuditRecord,
    Change,
    ChangeDocument,
    ChangeSet,
    Checkpoint,
    Command,
    CommandResult,
    Conflict,
    FileDocument,
    Held,
    OutputPart,
    Problem,
    Question,
    Refused,
    RolledBack,
    SandboxInfo,
    Size,
    Written,
)
from ._sync._approvals import Approvals
from ._sync._client import Palisade
from ._sync._commands import CommandHandle, Commands
from ._sync._files import Files
from ._sync._sandbox import Sandbox

__all__ = [
    "Applied",
    "ApprovalEvent",
    "ApprovalList",
    "Approvals",
    "AsyncApprovals",
    "AsyncCommandHandle",
    "AsyncCommands",
    "AsyncFiles",
    "AsyncPalisade",
    "AsyncSandbox",
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
    "Failed",
    "FileDocument",
    "Files",
    "Held",
    "InProgress",
    "Interrupted",
    "InvalidRequest",
    "NameTaken",
    "NotAllowed",
    "NotAuthorised",
    "NotFound",
    "OutputPart",
    "Palisade",
    "PalisadeError",
    "Problem",
    "ProblemError",
    "Question",
    "Refused",
    "RolledBack",
    "Sandbox",
    "SandboxInfo",
    "Size",
    "TimedOut",
    "TooLarge",
    "Written",
]
