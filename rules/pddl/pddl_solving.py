"""How rules choose the next action: two actions ahead at most, from what the context shows.

In this order: an action that reaches something wanted at once; what came next in an earlier task that was
told; an action that makes such an action possible; a thought that names a subgoal, for later turns to find
in the context; an order of actions that an insight tells; something not tried yet; the list of valid
actions; and where none of these is left, a repetition. Nothing is planned beyond that, and nothing is known
but what was read: a solver like this repeats itself where its context no longer tells what it did.

So it can tell whether a memory still shows what the next step needs: facts that are no longer observed,
failures, subgoals, a way that somebody else went; and what showing it costs in tokens. It cannot tell how a
language model would word, misread or generalise any of this, nor how good a model's own memories would be.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from mneme.rules.pddl.pddl_manual import (
    Act,
    Binding,
    Doing,
    Sentence,
    filled,
    is_open,
    is_parameter,
    said,
    unified,
)
from mneme.rules.pddl.pddl_reading import Example, Reading

AHEAD = 2
"""Actions that the solver looks ahead: one, and one that makes it possible."""
BRANCHES = 6
WAYS = 4
REMEMBERED = 3
CHECK = "check valid actions"


class Way(NamedTuple):
    """An action that would reach something, and what it still needs."""

    act: Act
    missing: tuple[Sentence, ...]


def next_action(reading: Reading, avoided: Iterable[str] = ()) -> str:
    """Return what to do next, in the words that the environment takes."""
    return Solving(reading, frozenset(avoided)).next()


class Solving:
    """One choice; it leaves nothing behind but its words."""

    def __init__(self, reading: Reading, avoided: frozenset[str]) -> None:
        self._reading, self._avoided = reading, avoided
        self._manual, self._facts = reading.manual, reading.facts
        self._matches: dict[Sentence, list[Binding]] = {}
        self._given: dict[Sentence, bool] = {}

    def next(self) -> str:
        """Return the first choice that there is."""
        return (
            self._at_once() or self._two_ahead() or self._as_before() or self._thought()
            or self._as_advised() or self._untried() or self._asked() or self._again()
        )  # fmt: skip

    @cached_property
    def wanted(self) -> list[Sentence]:
        """Return what is still to be reached: noted subgoals, newest first, then the goals."""
        open_goals = [each for each in self._reading.goals if each not in self._facts]
        return list(dict.fromkeys([*self._reading.subgoals, *open_goals]))

    def _at_once(self) -> str:
        return self._reaching(1)

    def _two_ahead(self) -> str:
        return self._reaching(AHEAD)

    def _reaching(self, depth: int) -> str:
        for careful in (True, False):
            for target in self.wanted:
                act = self._towards(target, depth, (), careful)
                if act is not None:
                    return str(act)
        return ""

    def _towards(
        self, target: Sentence, depth: int, above: tuple[Sentence, ...], careful: bool
    ) -> Act | None:
        """Return an action that reaches something within so many actions, or the first on the way to it."""
        for way in self._ways(target):
            if not way.missing and self._allowed(way.act, careful):
                return way.act
            if depth == 1:
                continue
            for need in way.missing:
                act = None if need in above else self._towards(need, depth - 1, (*above, target), careful)
                if act is not None:
                    return act
        return None

    def _allowed(self, act: Act, careful: bool) -> bool:
        """Say whether an action is worth a try; the careful one undoes no goal and no last step."""
        if str(act) in self._avoided or act in self._reading.failed or act in self._reading.led_back:
            return False
        return not (careful and (self._spoils(act) or self._undoes(act)))

    def _spoils(self, act: Act) -> bool:
        _, deletes = self._manual.effects(act)
        return any(each in deletes and each in self._facts for each in self._reading.goals)

    def _undoes(self, act: Act) -> bool:
        if not self._reading.done:
            return False
        adds, deletes = self._manual.effects(act)
        before = self._manual.effects(self._reading.done[-1])
        return adds == before[1] and deletes <= before[0]

    def _ways(self, target: Sentence) -> list[Way]:
        """Return the ways to reach something, those that lack least first."""
        found: list[Way] = []
        for doing in self._manual.doings.values():
            for form in doing.adds:
                binding = unified(form, target, {})
                if binding is not None and self._fits(doing, binding):
                    found += self._completed(doing, self._needs(doing), binding, ())
        found = [way for way in dict.fromkeys(found) if self._can_be(way, target)]
        return sorted(found, key=lambda way: len(way.missing))[:WAYS]

    def _can_be(self, way: Way, target: Sentence) -> bool:
        """Say whether what is missing can be brought about, and is not the very thing that is wanted."""
        return target not in way.missing and not any(map(self._is_given, way.missing))

    def _needs(self, doing: Doing) -> list[Sentence]:
        """Return what an action needs, first what no action can bring about."""
        return sorted(doing.needs, key=lambda need: not self._is_given(need))

    def _fits(self, doing: Doing, binding: Binding) -> bool:
        return all(self._manual.may_be(doing, *each) for each in binding.items())

    def _completed(
        self, doing: Doing, needs: Sequence[Sentence], binding: Binding, missing: tuple[Sentence, ...]
    ) -> Iterator[Way]:
        """Bind what is not bound yet to what makes the needs hold; needs that nothing meets are missing."""
        if not needs:
            filled_in = self._invented(doing, binding)
            if filled_in is not None:
                yield Way(doing.act(filled_in), tuple(filled(each, filled_in) for each in missing))
            return
        need = filled(needs[0], binding)
        bindings = [
            {**binding, **each} for each in self._matching(need)[:BRANCHES] if self._fits(doing, each)
        ]
        for each in bindings:
            yield from self._completed(doing, needs[1:], each, missing)
        if not bindings:
            yield from self._completed(doing, needs[1:], binding, (*missing, needs[0]))

    def _matching(self, need: Sentence) -> list[Binding]:
        if not is_open(need):
            return [{}] if need in self._facts else []
        if need not in self._matches:
            found = (unified(need, fact, {}) for fact in sorted(self._facts) if len(fact) == len(need))
            self._matches[need] = [each for each in found if each is not None]
        return self._matches[need]

    def _invented(self, doing: Doing, binding: Binding) -> Binding | None:
        """Let parameters that nothing has bound stand for objects of their kind that are not in use yet.

        Rather for those that something is known of together with the objects in use.
        """
        bound = dict(binding)
        for parameter in doing.parameters:
            if parameter in bound:
                continue
            used = set(bound.values())
            kin = [each for each in self._manual.kinds if self._manual.may_be(doing, parameter, each)]
            free = [each for each in kin if each not in used]
            if not free:
                return None
            bound[parameter] = max(free, key=lambda each: self._together(each, used))
        return bound

    def _together(self, thing: str, used: set[str]) -> int:
        """Count the facts that speak of a thing and of one of those in use."""
        return sum(thing in fact and not used.isdisjoint(fact) for fact in self._facts)

    @cached_property
    def possible(self) -> list[Act]:
        """Return the actions that are possible, as far as is known, in the order of their descriptions."""
        ways = [
            way
            for doing in self._manual.doings.values()
            for way in self._completed(doing, self._needs(doing), {}, ())
            if not way.missing
        ]
        return [way.act for way in dict.fromkeys(ways) if self._changes(way.act)]

    def _changes(self, act: Act) -> bool:
        adds, deletes = self._manual.effects(act)
        return not adds <= self._facts or bool(deletes & self._facts)

    def _as_before(self) -> str:
        """Do what came next in an earlier task, after the actions that were done last here, too."""
        for example in self._reading.examples:
            act = self._following(example)
            if act is not None:
                return str(act)
        return ""

    def _following(self, example: Example) -> Act | None:
        names = [act.name for act in example.acts]
        done = [act.name for act in self._reading.done]
        for length in range(min(REMEMBERED, len(done)), 0 if done else -1, -1):
            last = done[len(done) - length :]
            followed = (at + length for at in range(len(names)) if names[at : at + length] == last)
            found = (self._alike(example, at) for at in followed if at < len(names) and (length or not at))
            act = next(filter(None, found), None)
            if act is not None:
                return act
        return None

    def _alike(self, example: Example, at: int) -> Act | None:
        """Return the possible action that is to the goals here what the example's was to its own."""
        model, roles = example.acts[at], self._roles(example, at)
        able = [act for act in self.possible if act.name == model.name and self._allowed(act, True)]
        asked = {word for each in self.wanted for word in each}
        wanted = [roles.get(thing, "") for thing in model.things]

        def fitness(act: Act) -> tuple[int, int]:
            same = sum(each == other for each, other in zip(act.things, wanted, strict=True))
            return same, sum(thing in asked for thing in act.things)

        best = max(able, key=fitness, default=None)
        return best if best is not None and fitness(best)[0] > 0 else None

    def _roles(self, example: Example, at: int) -> Binding:
        """Let the objects of the goal that the model's action served stand for those of one wanted here."""
        served = [goal for goal in example.goals if self._is_served(example, goal, at)] or example.goals
        for goal in served:
            for target in self.wanted:
                roles = self._paired(goal, target)
                if roles is not None:
                    return roles
        return {}

    def _is_served(self, example: Example, goal: Sentence, at: int) -> bool:
        return any(goal in self._manual.effects(act)[0] for act in example.acts[at:])

    def _paired(self, goal: Sentence, target: Sentence) -> Binding | None:
        """Return which object stands for which, where two sentences have the same form."""
        if len(goal) != len(target):
            return None
        pairs = dict(zip(goal, target, strict=True))
        known = self._manual.kinds
        same = all(one == other or other in known for one, other in pairs.items())
        return {one: other for one, other in pairs.items() if other in known} if same else None

    def _thought(self) -> str:
        """Name what the nearest way to something wanted still lacks, unless that was named before."""
        for target in self.wanted:
            for way in self._ways(target):
                for need in way.missing:
                    if need not in self.wanted:
                        thought = f"think: open subgoal: {said(need)}. It is needed for: {said(target)}."
                        return "" if thought in self._avoided else thought
        return ""

    def _is_given(self, need: Sentence) -> bool:
        """Say whether no action makes something true, so that it can be found, but not brought about."""
        if need not in self._given:
            adds = (form for doing in self._manual.doings.values() for form in doing.adds)
            self._given[need] = not any(len(form) == len(need) and _alike(form, need) for form in adds)
        return self._given[need]

    def _as_advised(self) -> str:
        """Do the next action in an order that an insight tells."""
        done = [act.name for act in self._reading.done]
        for order in self._reading.orders:
            after = order.index(done[-1]) + 1 if done and done[-1] in order else 0
            for name in order[after:]:
                able = (act for act in self.possible if act.name == name and self._allowed(act, True))
                act = next(able, None)
                if act is not None:
                    return str(act)
        return ""

    def _untried(self) -> str:
        """Do what is possible and was done least often, as far as can be seen; rather undo nothing."""
        able = [act for act in self.possible if self._allowed(act, False)]
        known = self._reading.done
        best = min(
            able, key=lambda act: (self._spoils(act) or self._undoes(act), known.count(act)), default=None
        )
        return str(best) if best else ""

    def _asked(self) -> str:
        """Ask what is valid, or do something of what was listed."""
        if not self._reading.listed:
            return CHECK if CHECK not in self._avoided else ""
        able = [act for act in self._reading.listed if self._allowed(act, False)]
        return str(able[0]) if able else ""

    def _again(self) -> str:
        """Repeat something that is possible, since nothing else is left; else look around."""
        able = [*self.possible, *self._reading.listed]
        return next((str(act) for act in able if str(act) not in self._avoided), "look around")


def _alike(form: Sentence, other: Sentence) -> bool:
    """Say whether two sentences could say the same, whatever their parameters stand for."""
    pairs = zip(form, other, strict=True)
    return all(one == two or is_parameter(one) or is_parameter(two) for one, two in pairs)
