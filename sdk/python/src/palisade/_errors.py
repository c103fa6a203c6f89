"""What can go wrong, by the `type` of the problem that the service answers with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Type

from ._models import Held, Problem, ProblemKind, model

if TYPE_CHECKING:
    from ._models import CommandResult


class PalisadeError(Exception):
    """Anything that goes wrong with a sandbox."""


class ConnectionFailed(PalisadeError):
    """Nobody listens, or the connection was lost and could not be made again."""


class CommandFailed(PalisadeError):
    """A command ended with another exit code than 0 (`check=True`)."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__(f"the command ended with {result.exit_code}: {str(result.stderr)[-2000:]}")
        self.result = result


class CommandTimeout(PalisadeError):
    """A command was ended because its time was over."""

    def __init__(self, message: str, result: Optional[CommandResult] = None) -> None:
        super().__init__(message)
        self.result = result


class ProblemError(PalisadeError):
    """The service did not carry a request out."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem

    @property
    def type(self) -> str:
        return self.problem.type

    @property
    def kind(self) -> ProblemKind:
        return self.problem.kind

    @property
    def status(self) -> int:
        return self.problem.status


class InvalidRequest(ProblemError):
    """It cannot be read, or asks for something that cannot be."""


class NotFound(ProblemError):
    """There is no sandbox, command or file of this name."""


class NotAllowed(ProblemError):
    """The policy does not allow it."""


class NotAuthorised(ProblemError):
    """No valid token, or another user."""


class ConflictError(ProblemError):
    """The present state does not allow it."""

    @property
    def held(self) -> Optional[Held]:
        """What stands in the way of an apply."""
        return self.problem.held


class NameTaken(ConflictError):
    """Another sandbox has this name."""


class InProgress(ConflictError):
    """The same request is being carried out."""


class Interrupted(ConflictError):
    """The server was ended while it carried the same request out, and nobody knows how far it came."""


class ChangedMeanwhile(ConflictError):
    """A file is not the version that was to be replaced."""


class TooLarge(ProblemError):
    """Of a request, a file or an answer."""


class Busy(ProblemError):
    """Too much is going on, or something that is needed is used up."""


class TimedOut(ProblemError):
    """It took too long."""


class Cancelled(ProblemError):
    """It was cancelled."""


class Failed(ProblemError):
    """The service could not do it."""


PREFIX = "urn:palisade:problem:"

#: The class for each `type`, without its prefix.
BY_TYPE: Dict[str, Type[ProblemError]] = {
    "malformed": InvalidRequest,
    "invalid": InvalidRequest,
    "media-type": InvalidRequest,
    "method": InvalidRequest,
    "range": InvalidRequest,
    "not-found": NotFound,
    "refused": NotAllowed,
    "unauthorised": NotAuthorised,
    "forbidden": NotAuthorised,
    "conflict": ConflictError,
    "name-taken": NameTaken,
    "in-progress": InProgress,
    "interrupted": Interrupted,
    "changed": ChangedMeanwhile,
    "too-large": TooLarge,
    "busy": Busy,
    "timeout": TimedOut,
    "slow": TimedOut,
    "cancelled": Cancelled,
    "failed": Failed,
}


def error_of(status: int, body: Any) -> ProblemError:
    """The error for an answer that is no success."""
    try:
        problem = model(Problem, body)
    except ValueError:
        problem = Problem("about:blank", "No answer of this service", status, str(body)[:2000], "initialisation")
    name = problem.type[len(PREFIX) :] if problem.type.startswith(PREFIX) else ""
    return BY_TYPE.get(name, ProblemError)(problem)
