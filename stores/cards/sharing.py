"""A team's cards for another organisation: without names, figures and exact counts, as unsigned YAML (§11.4).

Cards in service go out, each as a new and provisional one: its id follows from the abstract claim, its time
is the day of the export, and it names no task, person or model. Lessons that are the same once they are
abstract become one card. Whoever imports it takes the lesson alone, as from any file; the confidence that
follows from the noisy counts decides whether it is shown to agents or set aside.

*Abstraction.* A word stays where it is *public*: in the world's own language of patterns and features, or in
an English dictionary. All else is a name: what was a table, column or function in the team's own tasks (in
any inflection, however ordinary the word), what the caller says is private, what is quoted, addresses,
paths, words with digits, underscores or inner capitals, capitalised words within a sentence, and every word
that the dictionary lacks. The same name is the same placeholder within a card, and no figure stays.

What it cannot see: a name that is an ordinary English word, in small letters, and was in no logged task; and
what the lesson itself gives away, since to say when something helps is its purpose.

*Counts.* Those of successes and failures are given out under differential privacy. What is protected is one
task: whether it is in a team's log or not changes the odds of any published counts by e^ε at most. So that
this holds for all cards of an export together, a task counts for `A_TASK` cards at most, chosen by a digest
of the task and the card alone. The noise is OpenDP's discrete Laplace, exact and drawn from the system's
entropy. What follows from the published counts (their sum is the reuse, their share the confidence) costs
nothing more. Exports add up: each one's ε is added to the team's account before its counts are given out,
and one that would pass the budget is refused.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field

from mneme.core.errors import BadInput, needs
from mneme.stores.cards.card import (
    QUARANTINE,
    SHARER,
    Card,
    CardRecords,
    CardVersion,
    Evidence,
    Frozen,
    Lesson,
    Provenance,
)
from mneme.stores.cards.card_files import dump
from mneme.stores.cards.lifecycle import is_in_service
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, team_namespace
from mneme.stores.shelf import Shelf, kind_of

FIGURE_MARK, NAME_MARK = "[figure]", "[name {}]"
FIGURE_PIECE = re.compile(r"(?<![\w.])\d[\d.,:/-]*(?<![.,:/-])(?![\w])")
"""A figure, a date or a time by itself; within a word it makes the word a name."""
PIECES = re.compile(
    r"(?P<quoted>`[^`\n]+`|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w))"
    r"|(?P<abbreviation>\b(?:e\.g|i\.e)\b)"
    rf"|(?P<figure>{FIGURE_PIECE.pattern})"
    r"|(?P<address>\w+://[^\s)\]]+|[\w.+-]+@[\w.-]+\w|~?(?:[/\\][\w.-]+)+[/\\]?|\w+(?:[./\\:@]+\w+)+)"
    r"|(?P<word>\w+(?:['’]\w+)?)"
)
CARD_WORD = re.compile(r"\w+")
BEGINS = re.compile(r"(?:^|[.:;!?(\[\"'\n])\s*$")
FUNCTION_WORDS = frozenset(Path(__file__).with_name("function_words.txt").read_text(encoding="utf-8").split())
"""Words that the dictionary of inflected words does not hold, and units."""


class Abstraction:
    """Abstraction of one team's lessons: public words stay, the team's names are replaced."""

    def __init__(self, public: Iterable[str] = (), private: Iterable[str] = ()) -> None:
        self._public = {word for text in public for word in CARD_WORD.findall(text.casefold())}
        self._private = {form for name in private for form in _forms(name.casefold())}
        self.names: set[str] = set()
        """The names that were taken out so far, in small letters; they are not for the receiver."""
        self.figures = 0
        """How many figures were taken out so far."""

    def lesson(self, lesson: Lesson) -> Lesson:
        """Return a lesson without names, figures, example and the tasks in which approaches failed."""
        known: dict[str, str] = {}

        def plain(text: str) -> str:
            return self._plain(text, known)

        told = lesson.model_dump(include={*Lesson.model_fields})
        for each in told["deprecated_approaches"]:
            del each["failed_in"]
            if each.pop("gained") is not None:  # without that figure, that it falls short is not known
                each["condition"] = ""
        scope, told["example"] = told.pop("scope"), ""
        told = _each_text(told, plain)
        told["tags"] = list(dict.fromkeys(told["tags"]))
        return Lesson(**told, scope=scope if scope.casefold() in self._public else plain(scope))

    def _plain(self, text: str, known: dict[str, str]) -> str:
        """Return a text with placeholders, numbered as the card has used them so far."""

        def put(piece: re.Match[str]) -> str:
            said = piece[0]
            if piece["figure"]:
                self.figures += 1
                return FIGURE_MARK
            begins = bool(BEGINS.search(text[: piece.start()]))
            if piece["abbreviation"] or (piece["word"] and self._may_stay(said, begins)):
                return said
            if not piece["word"] and {*CARD_WORD.findall(said.casefold())} <= self._public:
                return said
            # By its base form, so that a name's singular and plural are one placeholder.
            name = min(_forms(said.strip("`\"'").casefold().replace("’", "'").removesuffix("'s")))
            self.names.add(name)
            return known.setdefault(name, NAME_MARK.format(len(known) + 1))

        return PIECES.sub(put, text)

    def _may_stay(self, word: str, begins: bool) -> bool:
        small = word.casefold().replace("’", "'").removesuffix("'s")
        if small in self._public:
            return True
        if _forms(small) & self._private or re.search(r"[\d_]", word):
            return False
        capital = word[0].isupper() and not word.isupper()
        if any(letter.isupper() for letter in word[1:]) and not word.isupper():
            return False
        if small in FUNCTION_WORDS or len(word) == 1:
            return True
        return (begins or not capital) and any(kind != "PROPN" for kind in _lemmas(small))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with `change` applied to every text in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _each_text(each, change) for name, each in value.items()}
    return [_each_text(each, change) for each in value] if isinstance(value, list) else value


@lru_cache(maxsize=65_536)
def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    """Return the lemmas that a word may be a form of, by part of speech; the first call takes 0.5 s."""
    found: dict[str, tuple[str, ...]] = import_module("lemminflect").getAllLemmas(word)
    return found


def _forms(word: str) -> frozenset[str]:
    """Return a word in lower case, and the lemmas that it may be a form of."""
    return frozenset({word, *chain.from_iterable(_lemmas(word).values())})


A_TASK = 1
"""Maximum cards for which one task counts."""
EPSILON_BUDGET = 5.0
"""Default bound on the sum of ε over all exports of a team."""
SPENT = "spent"
Outcomes = Mapping[str, bool]
"""Tasks by id, and whether the card served in them."""
Counts = tuple[int, int]
"""Successes and failures."""


def outcomes_of(history: Sequence[CardVersion]) -> dict[str, bool]:
    """Return the outcome of each task that the card rests on now, as far as its history has it.

    A version knows the outcomes of its last ten tasks, so that all versions know all of them.
    """
    counted = {*history[-1].card.evidence.task_ids}
    seen = [outcome for each in history for outcome in each.card.evidence.recent]
    return {outcome.task: outcome.success for outcome in seen if outcome.task in counted}


def bounded_counts(outcomes: Mapping[str, Outcomes]) -> dict[str, Counts]:
    """Return each card's counts, where no task counts for more than `A_TASK` of the cards."""
    touched: dict[str, list[str]] = {}
    for card, tasks in outcomes.items():
        for task in tasks:
            touched.setdefault(task, []).append(card)
    kept = {
        # By task and card alone: if other tasks had a part in the choice, one task could change more counts.
        task: sorted(cards, key=lambda card: hashlib.sha256(f"{task}\x1f{card}".encode()).digest())[:A_TASK]
        for task, cards in touched.items()
    }
    found = {}
    for card, tasks in outcomes.items():
        mine = [success for task, success in tasks.items() if card in kept[task]]
        found[card] = sum(mine), len(mine) - sum(mine)
    return found


def noisy(counts: Mapping[str, Counts], epsilon: float) -> dict[str, Counts]:
    """Return counts with noise, none below 0. Raises BadInput unless ε > 0, MnemeError without OpenDP."""
    if not 0 < epsilon < float("inf"):
        raise BadInput(f"ε is {epsilon:g}.", "Give a number above 0: the smaller, the more private.")
    with needs("Differential privacy", "private"):
        import opendp.prelude as dp  # noqa: PLC0415
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    # One task changes all published counts together by A_TASK at most: their L1 sensitivity.
    mechanism = dp.m.make_laplace(*space, scale=A_TASK / epsilon)
    spread: list[int] = mechanism([each for pair in counts.values() for each in pair])
    above = [max(each, 0) for each in spread]
    return dict(zip(counts, zip(above[::2], above[1::2], strict=True), strict=True))


class Spending(Frozen):
    """The privacy budget that a team has spent: the sum of ε over its exports, and their number."""

    epsilon: float = 0.0
    exports: int = 0
    at: datetime | None = None


class Shared(Frozen):
    """The export for another organisation, and its cost in privacy."""

    text: str = Field(description="The cards as YAML.")
    cards: int
    names: int = Field(description="Different names that were taken out.")
    figures: int = Field(description="Figures that were taken out.")
    epsilon: float | None = Field(description="Of this export's counts; none: there are no counts in it.")
    spent: Spending = Field(description="The team's exports up to now, this one included.")


class SharedFiles:
    """One team's cards, out to other organisations."""

    def __init__(self, ledger: Ledger, records: CardRecords) -> None:
        self._records = records
        self._account = Shelf(ledger, team_namespace(records.team, "privacy"), kind_of(Spending))

    async def spent(self) -> Spending:
        """Return what was spent so far."""
        return await self._account.find(SPENT) or Spending()

    async def _spend(self, epsilon: float, budget: float, *, change: Change) -> Spending:
        """Add an export to the account, before anything of it is given out.

        Raises BadInput where the sum would pass the budget; then nothing is spent.
        """

        def decide(before: Spending) -> tuple[Spending, str]:
            total = before.epsilon + epsilon
            if total > budget * (1 + 1e-9):  # sums of decimals such as 0.1 are not exact
                raise BadInput(
                    f"With this export ε would be {total:g} in all, over the budget of {budget:g}; "
                    f"{before.exports} exports have spent {before.epsilon:g}.",
                    "Give a smaller ε, share without counts, or raise the budget knowingly.",
                )
            return Spending(epsilon=total, exports=before.exports + 1, at=datetime.now(UTC)), change.reason

        if await self._account.find(SPENT) is None:
            await self._account.add_new(SPENT, Spending(), change=change)
        return await self._account.change(SPENT, decide, change)

    async def export(
        self, abstraction: Abstraction, epsilon: float | None, budget: float, *, change: Change
    ) -> Shared:
        """Return abstract cards, with noisy counts where an ε is given. Raises BadInput as `_spend` does."""
        cards = [each for each in await self._records.list() if is_in_service(each) and not each.flags]
        lessons: dict[str, Lesson] = {}
        outcomes: dict[str, dict[str, bool]] = {}
        for card in cards:
            lesson = abstraction.lesson(card)
            lessons.setdefault(lesson.card_id, lesson)
            found = outcomes_of(await self._records.history(card.id)) if epsilon is not None else {}
            outcomes.setdefault(lesson.card_id, {}).update(found)  # lessons that became one share their tasks
        counts: dict[str, Counts] = {}
        if epsilon is not None:
            # Drawn first, so that a missing package costs nothing; given out only once it is paid for.
            counts = noisy(bounded_counts(outcomes), epsilon)
            await self._spend(epsilon, budget, change=change)
        made = [_card(lesson, counts.get(key)) for key, lesson in lessons.items()]
        made.sort(key=lambda card: card.id)  # an order which says nothing of when they were learned
        return Shared(
            text="".join(map(dump, made)),
            cards=len(made),
            names=len(abstraction.names),
            figures=abstraction.figures,
            epsilon=epsilon,
            spent=await self.spent(),
        )


def _card(lesson: Lesson, counts: Counts | None) -> Card:
    """Return the card that goes out; its confidence is the noisy counts', or that of an untested lesson."""
    successes, failures = counts or (0, 0)
    known = successes + failures
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Card(
        **{name: getattr(lesson, name) for name in Lesson.model_fields},
        id=lesson.card_id,
        evidence=Evidence(success_count=successes, failure_count=failures),
        provenance=Provenance(created_by=SHARER, created_at=today),
        confidence=successes / known if known else QUARANTINE,
    )
