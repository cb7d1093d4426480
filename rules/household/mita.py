"""How rules answer the questions of MiTa, `prompts/household/mita.py` and `synopsis.py`."""

from collections.abc import Iterable

from mneme.prompts.household import mita as questions
from mneme.prompts.household import synopsis
from mneme.prompts.household.household import Container, Item
from mneme.prompts.household.mita import Allocation, CrossContext, Proposal, Situation
from mneme.prompts.household.synopsis import NARRATIVE, Found, Passage, Synopsis
from mneme.rules.household.judgement import best
from mneme.rules.household.teamwork import Hand, share_out
from mneme.rules.registry import rule


@rule(questions.propose_action)
def propose_action(given: Situation) -> Proposal:
    """Propose what is worth most by the member's own judgement of its own view."""
    choice = best(given)
    option = given.options[choice]
    return Proposal(reason=f"{option} seems to be worth most to {given.name}.", choice=choice)


@rule(questions.allocate_actions)
def allocate_actions(given: CrossContext) -> Allocation:
    """Solve the joint assignment over ways, expectations, promises and duplication."""
    team = [Hand(worker=each.worker, options=each.options, proposal=each.proposal) for each in given.members]
    chosen = share_out(given, team)
    kept = sum(report.proposal == option for report, option in zip(given.members, chosen, strict=True))
    return Allocation(
        reason=f"{kept} of {len(chosen)} proposals fit together best; the others give way.",
        choices={each.worker.name: option for each, option in zip(given.members, chosen, strict=True)},
    )


@rule(synopsis.summarise_passage)
def summarise_passage(given: Passage) -> Synopsis:
    """Say what was done, found, placed and checked; all of it, in the order of the record."""
    loose = [item for item in given.items if not item.placed and item.held_by is None]
    checked = [each for each in given.containers if each.checked is not None]
    unchecked = [each for each in given.containers if each.checked is None]
    return Synopsis(
        narrative=_narrative(given, loose, checked, unchecked),
        found=[Found(thing=item.id, place=given.places[item.id]) for item in loose],
        placed=[item.id for item in given.items if item.placed],
        checked=[each.id for each in checked],
        unchecked=[each.id for each in unchecked],
        explored=[room.id for room in given.rooms],
    )


def _narrative(
    given: Passage, loose: list[Item], checked: list[Container], unchecked: list[Container]
) -> str:
    sentences = [
        f"{given.change}.",
        _listed("Found and still loose", [f"{item.label} {item.holder}".strip() for item in loose]),
        _listed("Checked", _counted(checked)),
        _listed("Still unchecked", _counted(unchecked)),
        _listed("Explored rooms", [room.label for room in given.rooms]),
        _listed("Under way", [f"{each.name}: {each.doing}" for each in given.workers if each.doing]),
        *(f"{line}." for line in given.actions.splitlines() if not line.endswith("under way")),
    ]
    return _whole(sentence for sentence in sentences if sentence)


def _whole(sentences: Iterable[str]) -> str:
    """Put as many sentences together as a narrative holds; one cut short might say what is not so."""
    text = ""
    for sentence in sentences:
        if len(text) + len(sentence) < NARRATIVE:
            text = f"{text} {sentence}".strip()
    return text


def _counted(containers: list[Container]) -> list[str]:
    """Name a container that is the only one of its class, and count the others."""
    classes: dict[str, list[Container]] = {}
    for each in containers:
        classes.setdefault(each.name, []).append(each)
    return [alike[0].label if len(alike) == 1 else f"{len(alike)} {name}s" for name, alike in classes.items()]


def _listed(what: str, names: list[str]) -> str:
    return f"{what}: {', '.join(names)}." if names else ""
