"""Who may do what with the memory of a team that several people share: the roles file, and its audit.

Without a roles file (`MNEME_ROLES`) nobody shares anything: each user of a server has teams of their own, and
whoever uses a machine alone has all of it. With it, a member of a team has the rights that it names, and no
others; who is no member does not learn that the team is there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from mneme.core.errors import BadInput, Forbidden, StorageFailure, first_fault
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL, Change, Namespace, Version, Write, team_namespace, unescaped
from mneme.stores.recall import RECALLABLE, Asker, Opened, Recallable
from mneme.stores.shelf import Shelf, kind_of

ALONE = "mneme:alone"
"""The permission of the one person on a server without keys, who may name any user."""

Right = Literal["read", "write", "promote", "review"]
"""`promote` makes a private memory a fact of the team; `review` decides on what others propose."""


Policy = Literal["never", "ask", "measured", "always"]
"""What other teams of an organisation see of a team's records: none, those that its trials verified, all.

With `ask` each fact is proposed to the team that has the organisation's name.
"""

StalePolicy = Literal["review", "retire", "verify"]
"""What becomes of a record that is out of date: a person decides, it goes, or it is tried (cards alone)."""

ONLY_FOR: Mapping[str, Recallable] = {"measured": "card", "verify": "card", "ask": "fact"}
"""The policies of one kind: a world can try cards, and a reviewer is asked about facts."""

Agent = Literal["chatbot", "researcher", "expert", "manager", "pool"]
"""The agents of a team that are shown what others remember; `pool`: those that share answers in one."""


class Roles(BaseModel):
    """The rights of a shared team's members, what its agents are shown, and what other teams see of it."""

    model_config = ConfigDict(extra="forbid")

    teams: Mapping[str, Mapping[str, frozenset[Right]]] = {}
    agents: Mapping[str, Mapping[Agent, frozenset[Recallable]]] = {}
    organisations: Mapping[str, Mapping[str, Mapping[Recallable, Policy]]] = {}
    stale: Mapping[str, Mapping[Recallable, StalePolicy]] = {}

    @model_validator(mode="after")
    def _policies_fit_their_kinds(self) -> "Roles":
        for teams in (*self.organisations.values(), self.stale):
            for team, kinds in teams.items():
                for kind, policy in kinds.items():
                    if (only := ONLY_FOR.get(policy, kind)) != kind:
                        raise ValueError(f"{team}: {policy} is for {only}s alone, not for {kind}")
        return self

    def when_stale(self, team: str, kind: Recallable) -> StalePolicy:
        """Return what becomes of a team's records of a kind that are out of date."""
        return self.stale.get(team, {}).get(kind, "verify" if kind == "card" else "review")

    def opened(self, teams: Iterable[str]) -> tuple[Opened, ...]:
        """Return what members of these teams may see of the other teams of their organisations."""
        own = {*teams}
        return tuple(
            Opened(other, kind, policy == "measured")
            for members in self.organisations.values()
            if own & members.keys()
            for other, kinds in members.items()
            if other not in own
            for kind, policy in kinds.items()
            if policy in {"measured", "always"}
        )

    def asked_by(self, team: str) -> Sequence[str]:
        """Return the organisations to which what a team knows is proposed."""
        asked = self.organisations.items()
        return [name for name, teams in asked if teams.get(team, {}).get("fact") == "ask"]

    def shown_to(self, agent: Agent, team: str) -> Sequence[Recallable]:
        """Return the kinds that an agent is shown: all, unless the team's agents are named."""
        if team not in self.agents:
            return RECALLABLE
        return [kind for kind in RECALLABLE if kind in self.agents[team].get(agent, ())]

    def rights(self, user: str, team: str) -> frozenset[Right]:
        """Return what a user may do with a shared team's memory; nothing where they are no member."""
        return self.teams.get(team, {}).get(user, frozenset())


def roles() -> Roles:
    """Return the roles of the settings. Raises BadInput for a file that cannot be read."""
    path = settings().roles
    return read_roles(path) if path else Roles()


@lru_cache(4)
def read_roles(path: Path) -> Roles:
    """Read a roles file, once in a process. Raises BadInput, StorageFailure."""
    import yaml  # noqa: PLC0415  (slow to import, and most have no such file)

    try:
        return Roles.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as failure:
        raise StorageFailure(f"Cannot read the roles in {path}: {failure.strerror}.") from failure
    except yaml.YAMLError as fault:
        raise BadInput(f"{path} is not YAML: {fault}.", "See docs/how-to/shared-memory.md.") from fault
    except ValidationError as fault:
        raise BadInput(f"{path}: {first_fault(fault)}.", "See docs/how-to/shared-memory.md.") from fault


def may(user: str | None, team: str, right: Right) -> bool:
    """Return whether a user's role allows something in a team; who is alone (None) may do everything."""
    return user is None or is_own(user, team) or right in roles().rights(user, team)


def check_right(user: str | None, team: str, right: Right) -> None:
    """Refuse what a user's role does not allow. Raises Forbidden."""
    if not may(user, team, right):
        able = sorted(each for each, rights in roles().teams.get(team, {}).items() if right in rights)
        hint = f"Ask one of them, or have `{right}` added to {user}'s rights in the roles file (MNEME_ROLES)."
        who = f"{', '.join(able) or 'nobody'} may"
        raise Forbidden(f"{user} may not {right} the memory of the team {team}; {who}.", hint)


def own_user(identity: str | None, user: str) -> str:
    """Return whose data is meant: with a key, the key's user's. Raises Forbidden where another is named."""
    if identity is None:
        return user
    if user not in {LOCAL, identity}:
        raise Forbidden(f"The key is {identity}'s, not {user}'s.", f"Name no user, or use {user}'s key.")
    return identity


def own_team(identity: str | None, team: str, right: Right = "write") -> str:
    """Return the name under which a team is kept, so that two users' teams of one name stay apart.

    A team that several users share keeps its name. Raises Forbidden for a member who lacks the right.
    """
    if identity is None:
        return team
    if roles().rights(identity, team):
        check_right(identity, team, right)
        return team
    if "/" in team:
        raise BadInput(f"A team's name may not contain a slash: {team}.", "Choose another name.")
    return f"{identity}/{team}"


def is_own(user: str, team: str) -> bool:
    """Return whether a team, by the name under which it is kept, is a user's own."""
    return team.startswith(f"{user}/")


def may_read(user: str | None, namespace: Namespace) -> bool:
    """Return whether a user may see what is in a namespace; who is alone (None) sees everything."""
    kind, name = namespace[0], unescaped(namespace[1])
    return may(user, name, "read") if kind == "teams" else user is None or (kind == "users" and name == user)


def team_sees(team: str) -> Callable[[Namespace], bool]:
    """Return what all who see a team's memory may see: the team's, and of a user's own team the user's."""
    user = team.partition("/")[0] if "/" in team else ""
    seen = {"teams": team, "users": user}
    return lambda namespace: settings().auth is None or unescaped(namespace[1]) == seen.get(namespace[0])


SHARED = "shared"
"""The reason of a note that somebody shared something with a team."""


class Seen(BaseModel):
    """That somebody read a shared team's memory, or shared something with it: who and how, never what."""

    by: str
    what: str


async def asker_of(ledger: Ledger, caller: str | None, user: str, teams: Sequence[str]) -> Asker:
    """Return who asks, by the names under which teams are kept, and note in the audits that they read."""
    opened = roles().opened(teams)
    for team in dict.fromkeys([*teams, *(each.team for each in opened)]):
        await audit(ledger, caller, team, "recall")
    return Asker(user, tuple(teams), opened)


class StartedLedger(Ledger):
    """A ledger as it serves a run that a user of a server started: who did stands in all that it writes."""

    __slots__ = ("_user",)

    def __init__(self, ledger: Ledger, user: str) -> None:
        self.__dict__ = ledger.__dict__  # it is the same ledger, with what it has read
        self._user = user

    async def write(self, writes: Sequence[Write]) -> list[Version]:
        """Store a batch as `Ledger.write` does."""
        said = [each.change for each in writes]
        by = [each.model_copy(update={"actor": ", ".join({self._user: 1, each.actor: 1})}) for each in said]
        told = zip(writes, by, strict=True)
        return await super().write([each.model_copy(update={"change": change}) for each, change in told])


async def audit(ledger: Ledger, user: str | None, team: str, what: str) -> None:
    """Note in a shared team's audit that somebody read its memory."""
    if writes := audited(ledger, user, team, what):
        await ledger.write(writes)


def audited(ledger: Ledger, user: str | None, team: str, what: str, reason: str = "read") -> Sequence[Write]:
    """Return the note in a shared team's audit of what somebody did; one's own team has none."""
    if user is None or is_own(user, team):
        return []
    shelf = Shelf[Seen, Seen](ledger, team_namespace(team, "audit"), kind_of(Seen))
    return [shelf.write(None, Seen(by=user, what=what), Change(reason=reason, actor=user))]
