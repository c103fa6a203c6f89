"""Questions of sandboxes, and answers to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, List, Optional, Union

from .._errors import error_of
from .._models import ApprovalEvent, ApprovalList, Decision, Lifetime, Question, Scope, Store, model

if TYPE_CHECKING:
    from ._client import Palisade


class Approvals:
    """The questions of all sandboxes, or of one."""

    def __init__(self, client: Palisade, session: Optional[str] = None) -> None:
        self._client = client
        self._session = session

    def list(self) -> List[Question]:
        """The questions that wait for an answer."""
        found = model(ApprovalList, (self._client.request("GET", "/v1/approvals")).json())
        return [question for question in found.questions if self._session in (None, question.session)]

    def stream(self) -> Iterator[ApprovalEvent]:
        """Follows questions and answers. While you read this, sandboxes wait for an answer that would otherwise deny.

        Questions that are open already come first, also after a connection that was lost.
        """
        for event in self._client.events("/v1/approvals/stream", reconnect=True):
            if event.name == "problem":
                raise error_of(500, event.data)
            session = event.data.get("session", "")
            if self._session not in (None, session):
                continue
            is_question = event.name in ("event.fs_request", "event.host_request")
            question = model(Question, event.data) if is_question else None
            yield ApprovalEvent(event.name, session, event.data, question)

    def decide(
        self,
        question: Union[Question, int],
        decision: Decision,
        *,
        lifetime: Optional[Lifetime] = None,
        scope: Optional[Scope] = None,
        secret: bool = False,
        store: Optional[Store] = None,
    ) -> None:
        """Answers a question. The first answer counts, wherever it is given; ConflictError if it was not this one."""
        if isinstance(question, Question):
            session, number = question.session, question.id
        elif self._session is not None:
            session, number = self._session, question
        else:
            raise ValueError("a number alone means a question only for the approvals of one sandbox")
        answer = {"decision": decision, "lifetime": lifetime, "scope": scope, "secret": secret, "store": store}
        body = {name: value for name, value in answer.items() if value is not None}
        self._client.request("POST", f"/v1/approvals/{session}/{number}", json=body)
