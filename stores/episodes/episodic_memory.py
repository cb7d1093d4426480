"""A household team's memory of an episode: its synopses, and its beliefs about the apartment.

Each episode is one record of ("teams", team, "household", apartment). Its text is that of its synopses, so
that search finds an episode by what happened in it. Furniture does not move between episodes. Where things
of a class usually are is counted over all apartments of the team: it is about kinds of places, not one home.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, team_namespace
from mneme.stores.shelf import Shelf, kind_of

EPISODES_RECALLED = 20
"""Episodes of an apartment that the next one starts from."""
Experience = dict[str, dict[str, tuple[int, int]]]
"""By class of thing and of place: how many turned up there, and how often they might have."""


class EpisodeRecord(BaseModel):
    """One finished episode."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = Field(min_length=1, description="Its run; one run is remembered once.")
    episode: str
    category: str
    success: bool
    steps: int = Field(ge=0)
    time: str = Field("", description="When it ended; empty: when it was written.")
    synopses: list[str] = Field([], description="What happened, in the order in which it was summarised.")
    finds: dict[str, list[str]] = Field(
        {}, description="Things of the task by class, and the containers or rooms, by class, that had them."
    )
    wanted: dict[str, int] = Field({}, description="How many things of each class the task asked for.")
    looked: dict[str, int] = Field(
        {}, description="How many containers of each class were looked into, and rooms of each name entered."
    )
    furniture: list[dict[str, Any]] = Field(
        [], description="Containers and surfaces where the team saw them, as the environment describes them."
    )

    @property
    def text(self) -> str:
        """Return the text for search."""
        return "\n".join([f"{self.category}: {self.steps} steps.", *self.synopses])


EPISODE = kind_of(EpisodeRecord, text=lambda episode: episode.text)


class EpisodicMemory(Shelf[EpisodeRecord, EpisodeRecord]):
    """One team's episodes in one apartment, in the ledger."""

    def __init__(self, ledger: Ledger, team: str, apartment: str) -> None:
        super().__init__(ledger, team_namespace(team, "household", apartment), EPISODE)

    async def keep(self, remembered: EpisodeRecord, *, change: Change) -> EpisodeRecord:
        """Add an episode; the same run again changes nothing."""
        return await self.insert(remembered, change=change, idempotency_key=f"episode:{remembered.run}")

    async def recall(self, limit: int = EPISODES_RECALLED) -> Sequence[EpisodeRecord]:
        """Return the latest episodes, oldest first."""
        return await self.latest(limit)

    async def recall_everywhere(self) -> list[EpisodeRecord]:
        """Return the team's episodes in all apartments, of each the latest `EPISODES_RECALLED`."""
        found = await self.ledger.namespaces(self.namespace[:-1])
        homes = [Shelf(self.ledger, each, self.kind) for each in found]
        return [each for home in homes for each in await home.latest(EPISODES_RECALLED)]


def experience_of(episodes: Sequence[EpisodeRecord]) -> Experience:
    """Count where things of each class turned up, and how often they might have."""
    counted: Experience = {}
    for episode in episodes:  # those of earlier versions do not say where the team looked, and add nothing
        for name, wanted in episode.wanted.items():
            places = counted.setdefault(name, {})
            for place, looked in episode.looked.items():
                found, chances = places.get(place, (0, 0))
                turned_up = episode.finds.get(name, []).count(place)
                # Each wanted thing might have been there, each time that the place was looked at.
                places[place] = (found + turned_up, chances + wanted * looked)
    return counted


def furniture_of(episodes: Sequence[EpisodeRecord]) -> list[dict[str, Any]]:
    """Return the known furniture: each piece as it was seen last."""
    known = {piece["id"]: piece for episode in episodes for piece in episode.furniture}
    return [known[key] for key in sorted(known)]
