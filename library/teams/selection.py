"""Speaker selection σ (§3, algorithm 2): who speaks next.

Deviations from algorithm 2 as printed: ACCEPT and FINALIZE are fields of an answer, not words searched in
texts; after the evaluation agent, where the listing returns nobody, the delegate speaks; and the delegate
opens the discussion.
"""

from dataclasses import dataclass, replace
from typing import Literal

from mneme.library.teams.team import Delegated, Team

Part = Literal["contribute", "delegate", "integrate", "evaluate"]


@dataclass(frozen=True)
class Floor:
    """The last speaker, the workers' number of turns, and the part of the discussion."""

    speaker: str = ""
    worker_counter: int = 0


def sigma(team: Team, floor: Floor) -> Floor:
    """Return the next speaker; nobody has spoken at the beginning."""
    speakers, count = team.speakers, floor.worker_counter
    if not isinstance(speakers, Delegated):
        return Floor(speakers.order[count % len(speakers.order)], count + 1)
    if floor.speaker == speakers.delegate:
        return Floor(speakers.workers[count % len(speakers.workers)], count + 1)
    if floor.speaker in speakers.workers:
        # The delegate speaks between the workers; the last one of a round is followed by the integrator.
        ends_round = count % len(speakers.workers) == 0
        return replace(floor, speaker=speakers.integrator if ends_round else speakers.delegate)
    if floor.speaker == speakers.integrator:
        return replace(floor, speaker=speakers.evaluator)
    # At the start, and after the evaluator, for whom the listing returns nobody.
    return replace(floor, speaker=speakers.delegate)


def speakers_of(team: Team) -> list[str]:
    """Return all roles that speak, in the order of their first turn."""
    speakers = team.speakers
    if not isinstance(speakers, Delegated):
        return speakers.order
    return [speakers.delegate, *speakers.workers, speakers.integrator, speakers.evaluator]


def round_of(team: Team) -> int:
    """Return the number of turns until every role has spoken once."""
    # With a delegate: it and each worker in turn, the integrator, the evaluator, its own last word.
    count = len(team.deciders)
    return 2 * count + 3 if isinstance(team.speakers, Delegated) else count


def part_of(team: Team, name: str) -> Part:
    """Return the part of a role in its turn."""
    speakers = team.speakers
    if not isinstance(speakers, Delegated) or name in speakers.workers:
        return "contribute"
    parts: dict[str, Part] = {speakers.delegate: "delegate", speakers.integrator: "integrate"}
    return parts.get(name, "evaluate")
