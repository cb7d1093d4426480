"""Discussions in the ledger: the topic of each, its conversation turn by turn, and its ending.

The conversation is kept here and not in the graph's state: a checkpointer stores the whole of every state, so
that the space for a conversation in it would grow with the square of its turns.
"""

import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel

from mneme.core.errors import BadInput, NotFound
from mneme.stores.discussions.agent_memory import AgentMemory
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Namespace, Version, check_namespace, team_namespace, texts_in
from mneme.stores.provenance import made_from
from mneme.stores.shelf import RecordKind, Shelf, kind_of

TURNS_PER_READ = 16
"""Turns read at once, newest first."""
SAYS_NOTHING = {"not discussed", "left out for length"}
"""Texts of a document part where nothing was said or shown, as in `prompts.discussion.document`."""
Ending = Literal["", "consensus", "turn limit"]


class Raised(BaseModel, frozen=True):
    """An issue that a turn raises, and the roles that it concerns; empty: all of them."""

    about: str
    concerns: list[str] = []


class Turn(BaseModel, frozen=True):
    """t_m: the message, its speaker, the size of the context, and the cost.

    `complaint` says what was unusable in the speaker's reply; a `passed` turn had nothing usable at all.
    """

    number: int
    speaker: str
    title: str
    message: str
    reasoning: str = ""
    changes: bool = False
    accept: bool = False
    finalize: bool = False
    raises: list[Raised] = []
    answers: list[int] = []
    person: bool = False
    context_tokens: int = 0
    turns_shown: int = 0
    tokens: int = 0
    answered_by: str = ""
    passed: bool = False
    complaint: str = ""

    def __str__(self) -> str:
        marks = [" (a person)"] * self.person + [" [ACCEPT]"] * self.accept + [" [FINALIZE]"] * self.finalize
        return f"[{self.number}] {self.title}{''.join(marks)}:\n{self.message}"

    def revokes(self, accepted: Collection[str]) -> set[str]:
        """Return the roles whose acceptance this turn revokes: those that its issues concern, if any.

        A turn that changes the solution and raises no issue revokes all acceptances.
        """
        concerned = [raised.concerns or accepted for raised in self.raises]
        if self.changes and not concerned:
            return set(accepted)
        return {name for names in concerned for name in names}


def acceptance(turns: Iterable[Turn], role: str) -> tuple[int, int]:
    """Return the turn in which a role last accepted, and the turn that ended this acceptance; 0: none."""
    accepted = ended = 0
    for turn in turns:
        if turn.speaker == role and turn.accept:
            accepted, ended = turn.number, 0
        # A role takes its acceptance back by its next turn without one.
        elif accepted and not ended and (turn.speaker == role or role in turn.revokes({role})):
            ended = turn.number
    return accepted, ended


class Discussion(BaseModel, frozen=True):
    """A discussion: its task, team and settings, its ending and its result."""

    id: str
    task: str
    team: dict[str, Any]
    memory: str
    context_tokens: int = 0
    max_turns: int = 0
    person: str = ""
    approve: bool = False
    carry: bool = False
    shared: list[str] = []
    """The names of the other workflows' memories that its agents are shown."""
    carried: list[str] = []
    """The versions shown to earlier discussions from which its agents carry something."""
    ended: Ending = ""
    lacks: str = ""
    turns: int = 0
    tokens: int = 0
    document: dict[str, Any] = {}
    withdrawn: list[str] = []
    """Agreements that were withdrawn since; the document still has them."""
    report: dict[str, str] = {}
    answered_by: dict[str, str] = {}
    complaints: list[str] = []
    at: datetime | None = None
    stale: str = ""
    """The reason why it is out of date, if this was asked for."""

    @property
    def agreed(self) -> str:
        """The text for search: all agreements."""
        return "\n".join(self.agreements)

    @property
    def agreements(self) -> list[str]:
        """What the document says of the matter, part by part; nothing before it is written."""
        parts = self.document.items()
        # Earlier versions stored withdrawn agreements without the labels of their fields.
        said = [(_said(*each), _said(*each, is_labelled=False)) for each in parts]
        return [text for text, unlabelled in said if text and not {text, unlabelled} & {*self.withdrawn}]

    @classmethod
    def of(cls, version: Version) -> "Discussion":
        """Read a discussion back from its record."""
        return cls.model_validate({**version.value, "at": version.created})

    def must_be_of(self, task: str, team: Mapping[str, Any]) -> "Discussion":
        """Return the discussion if it has this task and team. Raises BadInput if it is another one."""
        if (self.task, self.team) != (task, team):
            raise BadInput(
                f"discussion_id: {self.id} is another discussion, of another task or team.",
                "Give another id, or none.",
            )
        return self


class AgreementChange(BaseModel, frozen=True):
    """A version of a discussion that withdrew or restored an agreement: by whom, when and why."""

    agreement: str
    version: int
    reason: str
    actor: str
    at: datetime

    @classmethod
    def of(cls, agreement: str, version: Version) -> "AgreementChange":
        """Return how a version changed an agreement."""
        made = version.change
        return cls(
            agreement=agreement, version=version.version, reason=made.reason, actor=made.actor, at=version.at
        )


def _said(name: str, part: Any, is_labelled: bool = True) -> str:
    """Return one part of a document as a line; empty if it says nothing about the matter."""
    if isinstance(part, str):
        return f"{name}: {part}" if part not in SAYS_NOTHING else ""
    if not isinstance(part, dict) or "name" not in part:
        return ""
    fields = {field: str(each) for field, each in part.items() if field not in {"name", "turns"}}
    said = {field: each for field, each in fields.items() if each not in SAYS_NOTHING}
    labelled = [f"{field}: {each.strip().removesuffix('.')}" for field, each in said.items()]
    told = labelled if is_labelled else [*said.values()]
    return f"{part['name']}: {'; '.join(told)}" if told else str(part["name"])


ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def check_id(discussion_id: str) -> str:
    """Return an id, which also names a folder of files. Raises BadInput for anything but a plain name."""
    if not ID.fullmatch(discussion_id):
        raise BadInput(
            f"discussion_id: {discussion_id!r} cannot be an id.",
            "Letters, digits, - and _, at most 63, the first a letter or a digit.",
        )
    return discussion_id


DISCUSSION_KIND = RecordKind[Discussion, Discussion](
    Discussion.of,
    text=lambda discussion: discussion.agreed,
    outside=frozenset({"at", "stale"}),
    missing="There is no discussion {key}.",
    hint="See `mneme discuss list`.",
)


class Discussions(Shelf[Discussion, Discussion]):
    """The discussions of one owner; it reaches nobody else's."""

    def __init__(self, ledger: Ledger, owner: str) -> None:
        super().__init__(ledger, team_namespace(owner, "discussions"), DISCUSSION_KIND)
        self.owner = owner

    async def open(self, discussion: Discussion) -> Discussion:
        """Store a discussion at its beginning, once. Raises BadInput where its id names another one."""
        change = _made("a discussion begins", discussion)
        opened = await self.find(discussion.id) or await self.insert(
            discussion, change=change, key=discussion.id, idempotency_key="open"
        )
        return opened.must_be_of(discussion.task, discussion.team)

    async def close(self, discussion: Discussion) -> Discussion:
        """Store how a discussion ended; closed again in the same way, nothing is written."""
        change = _made(discussion.ended, discussion)

        def decide(now: Discussion) -> tuple[Discussion, str] | None:
            # These two are not the caller's: agreements may have been withdrawn meanwhile.
            ended = discussion.model_copy(update={"at": now.at, "withdrawn": now.withdrawn})
            return None if ended == now else (ended, discussion.ended)

        return await self.change(discussion.id, decide, change)

    async def withdraw(self, discussion_id: str, agreement: str, *, change: Change) -> Discussion:
        """Withdraw one agreement. Raises NotFound."""

        def decide(now: Discussion) -> tuple[Discussion, str]:
            return now.model_copy(update={"withdrawn": [*now.withdrawn, agreement]}), change.reason

        return await self.change(discussion_id, decide, change)

    async def withdrawn(self, discussion_id: str) -> list[AgreementChange]:
        """Return the agreements that are withdrawn now, with the versions that did so. Raises NotFound."""
        await self.head(discussion_id)
        found = dict[str, AgreementChange]()
        for version in await self.ledger.history(self.namespace, discussion_id):
            texts = texts_in(version.value.get("withdrawn"))
            # The version that withdrew it last: restored in between, it is not in `found` any more.
            found = {each: found.get(each) or AgreementChange.of(each, version) for each in texts}
        return [*found.values()]

    async def restore(self, discussion_id: str, agreement: str, *, change: Change) -> AgreementChange:
        """Restore an agreement that was withdrawn. Raises NotFound."""

        def decide(now: Discussion) -> tuple[Discussion, str]:
            if agreement not in now.withdrawn:
                raise NotFound(
                    f"Discussion {discussion_id} has no such agreement that was taken back: {agreement}",
                    f"See `mneme discuss withdrawn {discussion_id}`.",
                )
            left = [each for each in now.withdrawn if each != agreement]
            return now.model_copy(update={"withdrawn": left}), change.reason

        await self.change(discussion_id, decide, change)
        return AgreementChange.of(agreement, await self.head(discussion_id))

    async def heads(self, limit: int | None = None, **options: Any) -> list[Version]:
        """Return discussions in the order in which they were begun, without what is below each."""
        # Cut here: a limit of the ledger would count turns and memories, which are below the same namespace.
        return [each for each in await super().heads(**options) if each.namespace == self.namespace][:limit]

    def conversation(self, discussion_id: str) -> "Conversation":
        return Conversation(self.ledger, (*self.namespace, discussion_id, "turns"))

    def memory(self, discussion_id: str, agent: str) -> AgentMemory:
        return AgentMemory(self.ledger, (*self.namespace, discussion_id), agent)


class Conversation:
    """H_m: the turns of one discussion, only ever added to."""

    def __init__(self, ledger: Ledger, namespace: Namespace) -> None:
        self._turns = Shelf[Turn, Turn](ledger, check_namespace(namespace), kind_of(Turn))

    async def add(self, turn: Turn) -> Turn:
        """Store a turn, once; where its number was stored before, return the turn that was stored then."""
        change = Change(reason="said", actor=turn.speaker, model=turn.answered_by)
        return await self._turns.insert(turn, change=change, key=_key(turn.number), idempotency_key="said")

    async def get(self, number: int) -> Turn | None:
        """Return the turn of that number, if it has been taken."""
        return await self._turns.find(_key(number))

    async def newest_first(self, upto: int) -> AsyncIterator[Turn]:
        """Yield the turns up to a number, newest first, and read no more of them than are asked for."""
        for end in range(upto, 0, -TURNS_PER_READ):
            for turn in reversed(await self.between(max(1, end - TURNS_PER_READ + 1), end)):
                yield turn

    async def all(self, upto: int) -> list[Turn]:
        """Return the turns up to a number, oldest first."""
        return await self.between(1, upto)

    async def count(self) -> int:
        """Return how many turns have been taken."""
        return await self._turns.count()

    async def between(self, first: int, last: int) -> list[Turn]:
        """Return the turns of these numbers that have been taken, oldest first."""
        return self._turns.read(await self._turns.by_keys([_key(each) for each in range(first, last + 1)]))


def _made(reason: str, discussion: Discussion) -> Change:
    shown = [*discussion.shared, *discussion.carried]
    return made_from(Change(reason=reason, actor="intrinsic_memory"), shown)


def _key(number: int) -> str:
    return f"{number:06d}"
