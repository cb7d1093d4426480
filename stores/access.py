"""Access rights to the memory of a user or a team.

Without a roles file (`MNEME_ROLES`) nothing is shared: each user of a server has teams of their own, and the
only user of a machine may do everything. With it, a member of a team has exactly the rights that it names; a
user who is not a member does not learn that the team exists.

The ids of a user's threads are made here, so that nobody else can guess them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from mneme.core.errors import BadInput, Forbidden, StorageFailure, first_fault
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL, Change, Namespace, thread_root, unescaped

Recallable = Literal["fact", "card", "agreement", "synopsis", "pair"]
RECALLABLE: tuple[Recallable, ...] = get_args(Recallable)
SOLE_PERSON = "mneme:alone"
"""The permission of the only user of a server without keys, who may name any user."""

Right = Literal["read", "write", "promote", "review"]
"""`promote` makes a private memory a fact of the team; `review` decides on what others propose."""


Policy = Literal["never", "ask", "measured", "always"]
"""Visibility of a team's records to the organisation's other teams: none, verified ones, or all.

With `ask` each fact is proposed to the team that has the organisation's name.
"""

StalePolicy = Literal["review", "retire", "verify"]
"""Treatment of a record that is out of date: a person decides, it is retired, or it is tried (only cards)."""

ONLY_FOR: Mapping[str, Recallable] = {"measured": "card", "verify": "card", "ask": "fact"}
"""Policies that apply to only one kind: a world can try cards, and a reviewer is asked about facts."""

Agent = Literal["chatbot", "researcher", "expert", "manager", "pool"]
"""The agents of a team that are shown other workflows' memories; `pool`: those that share answers."""


class VisibleRecords(NamedTuple):
    """Records that another team of the organisation makes visible: one kind, or its verified ones only."""

    team: str
    kind: Recallable
    only_verified: bool = False


@dataclass(frozen=True)
class Asker:
    """The origin of a question: the user whose facts and the teams whose findings may answer it.

    `opened` are records that other teams make visible; the asker looks up its own `retrieves` kinds itself.
    """

    user: str = ""
    teams: tuple[str, ...] = ()
    opened: tuple[VisibleRecords, ...] = ()
    retrieves: tuple[Recallable, ...] = ()

    def sees(self, namespace: Namespace) -> bool:
        """Return whether a namespace belongs to the user or to one of the teams."""
        owner = unescaped(namespace[1])
        return owner == self.user if namespace[0] == "users" else owner in self.teams


class Roles(BaseModel):
    """The roles file: rights of a shared team's members, what its agents are shown, what other teams see."""

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
        """Return the team's policy for records of a kind that are out of date."""
        return self.stale.get(team, {}).get(kind, "verify" if kind == "card" else "review")

    def opened(self, teams: Iterable[str]) -> tuple[VisibleRecords, ...]:
        """Return what members of these teams may see of other teams in their organisations, by kind."""
        own = {*teams}
        return tuple(
            VisibleRecords(other, kind, policy == "measured")
            for members in self.organisations.values()
            if own & members.keys()
            for other, kinds in members.items()
            if other not in own
            for kind, policy in kinds.items()
            if policy in {"measured", "always"}
        )

    def asked_by(self, team: str) -> Sequence[str]:
        """Return the organisations to which the team's knowledge is proposed."""
        asked = self.organisations.items()
        return [name for name, teams in asked if teams.get(team, {}).get("fact") == "ask"]

    def shown_to(self, agent: Agent, team: str) -> Sequence[Recallable]:
        """Return the kinds that an agent is shown: all, unless the roles file names the team's agents."""
        if team not in self.agents:
            return RECALLABLE
        return [kind for kind in RECALLABLE if kind in self.agents[team].get(agent, ())]

    def rights(self, user: str, team: str) -> frozenset[Right]:
        """Return the user's rights to a shared team's memory; empty for a user who is not a member."""
        return self.teams.get(team, {}).get(user, frozenset())


NO_ROLES = Roles()


def roles() -> Roles:
    """Return the roles of the settings. Raises BadInput for a file that cannot be read."""
    path = settings().roles
    return read_roles(path) if path else NO_ROLES


@lru_cache(4)
def read_roles(path: Path) -> Roles:
    """Read a roles file, once per process. Raises BadInput, StorageFailure."""
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
    """Return whether a user has a right in a team; without keys (None) everything is allowed."""
    return user is None or is_own(user, team) or right in roles().rights(user, team)


def check_right(user: str | None, team: str, right: Right) -> None:
    """Refuse an action that the user's role does not allow. Raises Forbidden."""
    if not may(user, team, right):
        able = sorted(each for each, rights in roles().teams.get(team, {}).items() if right in rights)
        hint = f"Ask one of them, or have `{right}` added to {user}'s rights in the roles file (MNEME_ROLES)."
        who = f"{', '.join(able) or 'nobody'} may"
        raise Forbidden(f"{user} may not {right} the memory of the team {team}; {who}.", hint)


def own_user(identity: str | None, user: str) -> str:
    """Return the user whose data is accessed: with a key, the key's user. Raises Forbidden for any other."""
    if identity is None:
        return user
    if user not in {LOCAL, identity}:  # LOCAL: no user was named
        raise Forbidden(f"The key is {identity}'s, not {user}'s.", f"Name no user, or use {user}'s key.")
    return identity


def own_team(identity: str | None, team: str, right: Right = "write") -> str:
    """Return the name under which a team is stored; two users' teams of the same name stay separate.

    A team that several users share keeps its name. Raises Forbidden for a member who lacks the right.
    """
    if identity is None:
        return team
    if roles().rights(identity, team):
        check_right(identity, team, right)
        return team
    if "/" in team:  # a slash divides the owner from the team's name: see `is_own`
        raise BadInput(f"A team's name may not contain a slash: {team}.", "Choose another name.")
    return f"{identity}/{team}"


def is_own(user: str, team: str) -> bool:
    """Return whether a team, by the name under which it is stored, belongs to a user alone."""
    return team.startswith(f"{user}/")


def may_read(user: str | None, namespace: Namespace) -> bool:
    """Return whether a user may read a namespace; without keys (None) everything is allowed."""
    kind, name = namespace[0], unescaped(namespace[1])
    return may(user, name, "read") if kind == "teams" else user is None or (kind == "users" and name == user)


def team_sees(team: str) -> Callable[[Namespace], bool]:
    """Return a test of what all readers of a team may see; for a user's own team, also the user's data."""
    user = team.partition("/")[0] if "/" in team else ""
    seen = {"teams": team, "users": user}
    return lambda namespace: settings().auth is None or unescaped(namespace[1]) == seen.get(namespace[0])


async def thread_id(ledger: Ledger, user: str, name: str) -> str:
    """Return the id of a user's thread of that name: constant, and impossible for others to guess.

    A server's threads are UUIDs that its users may choose. If an id followed from the name alone, anybody who
    knows the name (a user's memory thread, a team's task) could create that thread first and lock its owner
    out. So each user has a random root in the ledger, which the store's API does not show, and an id follows
    from both.
    """
    place = thread_root(user)
    if not (first := await ledger.records(place, limit=1)):
        change = Change(reason="the root of this user's thread ids", actor="threads")
        await ledger.insert(place, {"root": str(uuid4())}, text="", change=change)
        # Read again: if several were written concurrently, the first one counts for all.
        first = await ledger.records(place, limit=1)
    return str(uuid5(UUID(str(first[0].value["root"])), name))


def known_id(name: str) -> str:
    """Return the id that earlier versions gave to the thread of that name, which anybody can compute."""
    return str(uuid5(NAMESPACE_URL, f"mneme:{name}"))
