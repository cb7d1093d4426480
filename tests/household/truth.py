"""A reader of every sentence that MiTa's agents are told, which holds each against what was so.

It shares no code with what makes the words. A sentence that it cannot read is refused like a false one.
"""

import re
from typing import Any

from tests.household.trace_of_truth import History

NAMES = ["Alice", "Bob", "Charlie", "Dana"]
ONE = r"<([^<>]+)> \((\d+)\)"
HEADING = re.compile(r"^([A-Z][^:\n<]*):$", re.M)
ABOUT = 3
"""Steps by which an estimated way may be wrong; or a third of it."""


class UntrueError(AssertionError):
    """A sentence that was not so, or that cannot be read."""


def hold(is_so: bool, sentence: str) -> None:
    """Refuse a sentence that is not so."""
    if not is_so:
        raise UntrueError(sentence)


def sections(text: str) -> dict[str, str]:
    """Take a question apart at its headings."""
    _, *parts = HEADING.split(text)
    return {parts[n]: parts[n + 1].strip() for n in range(0, len(parts), 2)}


class Reader:
    """Reads what is said at one step, and holds it against the world's history."""

    def __init__(self, history: History, now: int, window: int, last_synopsis: int) -> None:
        self.so, self.now, self.window, self.last_synopsis = history, now, window, last_synopsis
        self.team = range(len(history.episode.starts))

    # -- things and rooms ------------------------------------------------------------------------------

    def named(self, name: str, number: str) -> int:
        """Return the id of a thing, which must have that name."""
        thing = self.so.things.get(int(number))
        hold(thing is not None and thing.name == name, f"<{name}> ({number}) is nothing")
        return int(number)

    def each(self, text: str) -> list[int]:
        return [self.named(*pair) for pair in re.findall(ONE, text)]

    def beliefs(self, agent: int, text: str, since: int, *, now: bool | None, with_shut: bool = True) -> None:
        """Check what an agent sees (`now`), what it believes beyond that (not `now`), or both (None).

        Without `with_shut` nothing that is shut is said to be seen: it stands among the options.
        """
        shown: list[int] = []
        for line in map(str.strip, text.splitlines()):
            if line == "(none)":
                continue
            told = self._position(agent, line) or self.rooms(agent, line, since)
            if not told:
                shown.append(self._sight(agent, line, since, now))
        hold(len(shown) == len(set(shown)), f"said twice: {text}")
        seen = self.so.sights(agent, self.now) - set(self.so.moments[self.now].hands[agent])
        if not with_shut:
            shut = seen & self.so.shut(self.now)
            hold(not shut & set(shown), f"said to be seen and among what may be done: {text}")
            seen -= shut
        if now is not False:
            hold(seen <= set(shown), f"{NAMES[agent]} sees {seen - set(shown)}, which is not said: {text}")
        elif now is False:
            hold(not seen & set(shown), f"said to be seen and believed: {seen & set(shown)}")

    def _position(self, agent: int, line: str) -> bool:
        found = re.fullmatch(rf"I am in the ([^,]+), holding (nothing|{ONE}(?: and {ONE})?)\.", line)
        if found:
            moment = self.so.moments[self.now]
            hold(found[1] == self.so.rooms[moment.rooms[agent]], line)
            hold(self.each(found[2]) == moment.hands[agent], line)
        return found is not None

    def rooms(self, agent: int, line: str, since: int) -> bool:
        if found := re.fullmatch(r"(?:Not yet explored|Explored by nobody yet)(?: by me)?: (.+)\.", line):
            who = self.team if "nobody" in line else [agent]
            left = {*self.so.rooms} - {*self.so.explored(who, 0, self.now)}
            hold(set(self.each(found[1])) == left and bool(left), f"{NAMES[agent]}: {line}")
        elif found := re.fullmatch(r"Explored by me: (.+)\.", line):
            told = re.findall(rf"{ONE} \(step (\d+)\)", found[1])
            read = {self.named(name, number): int(step) for name, number, step in told}
            hold(read == self.so.explored([agent], since, self.now), f"{NAMES[agent]}: {line}")
        return found is not None

    def _sight(self, agent: int, line: str, since: int, now: bool | None) -> int:
        """Check a dated sentence about a container or a thing; return what it is about."""
        found = re.fullmatch(rf"{ONE} (?:is|was put) (.+) \(step (\d+)\)\.", line)
        if found is None:
            raise UntrueError(f"cannot be read: {line!r}")
        thing, what, step = self.named(found[1], found[2]), found[3], int(found[4])
        hold(since <= step <= self.now and (now is not True or step == self.now), line)
        hold(any(self.so.is_seen(each, thing, step) for each in self.team), f"nobody saw: {line}")
        own = self.so.last_seen(agent, thing, self.now)
        hold(own is None or own <= step, f"{NAMES[agent]} saw it later ({own}): {line}")
        self._state(thing, what, step, line)
        self._not_gone(agent, thing, step, line)
        return thing

    def _state(self, thing: int, what: str, step: int, line: str) -> None:
        moment, room = self.so.moments[step], self.so.rooms[self.so.room(thing, step)]
        if found := re.fullmatch(r"(open|closed, unchecked), in the (.+)", what):
            hold((found[1] == "open") == (thing in moment.open) and found[2] == room, line)
        elif found := re.fullmatch(r"held by (\w+)", what):
            hold(moment.places[thing] == ("held by", _number(found[1], line)), line)
        elif found := re.fullmatch(rf"(on|inside) {ONE} in the (.+)", what):
            holder = self.named(found[2], found[3])
            hold(moment.places[thing] == (found[1], holder) and found[4] == room, line)
        else:
            hold(what == f"in the {room}" and moment.places[thing][0] != "held by", line)

    def _not_gone(self, agent: int, thing: int, step: int, line: str) -> None:
        """Hold that the agent has not been there since and missed the thing."""
        room = self.so.room(thing, step)
        for later in range(step + 1, self.now + 1):
            here = self.so.moments[later].rooms[agent] == room
            where, holder = self.so.moments[step].places[thing]
            hidden = where == "inside" and holder in self.so.shut(later)
            missed = here and not hidden and where != "held by"
            hold(not missed, f"{NAMES[agent]} missed it at step {later}: {line}")

    def map(self, text: str) -> None:
        """Check which rooms have doors to which, and how far things are from one another."""
        for line in text.splitlines():
            if found := re.fullmatch(rf"{ONE} has doors to (.+)\.", line):
                room = self.named(found[1], found[2])
                doors = [{*door[:2]} for door in self.so.episode.doors]
                hold({*self.each(found[3])} == {o for d in doors if room in d for o in d - {room}}, line)
            elif found := re.fullmatch(rf"Steps from {ONE}: (.+)\.", line):
                start = self.named(found[1], found[2])
                for steps, name, number in re.findall(rf"about (\d+) to {ONE}", found[3]):
                    far = self.so.apart(start, self.named(name, number))
                    hold(abs(int(steps) - far) <= max(ABOUT, far / 3), f"{line}; in fact {far}")
            else:
                raise UntrueError(f"cannot be read: {line!r}")

    # -- deeds -----------------------------------------------------------------------------------------

    def deeds(self, agent: int, lines: list[str]) -> None:
        """Check what an agent did, when, and with what outcome."""
        for line in lines:
            if line == "(none)":
                continue
            if found := re.fullmatch(r"from step (\d+) to (\d+): (.+): (done|interrupted|failed: .+)", line):
                self._deed(agent, found[3], int(found[1]), int(found[2]), line)
                self._outcome(agent, found[3], found[4], int(found[2]), line)
            elif found := re.fullmatch(r"since step (\d+): (.+): under way", line):
                self._deed(agent, found[2], int(found[1]), self.now, line)
                self._outcome(agent, found[2], "under way", self.now, line)
            elif found := re.fullmatch(r"at step (\d+): (.+): (needed no step|failed: .+)", line):
                self._outcome(agent, found[2], found[3], int(found[1]), line)
            else:
                raise UntrueError(f"cannot be read: {line!r}")

    def deed_of(self, line: str) -> None:
        """Check what a member, named first, did."""
        name, _, deed = line.partition(": ")
        if line != "(none)":
            self.deeds(_number(name, line), [deed])

    def _deed(self, agent: int, macro: str, first: int, last: int, line: str) -> None:
        hold(first < last <= self.now, line)
        kind, target = self.macro(macro)
        for step in range(first + 1, last + 1):
            action = self.so.moments[step].actions[agent]
            touched = {action["target"], action["object"]}
            if kind == "wait":
                hold(action["kind"] == "wait", f"{line}: {action}")
            elif kind == "goput":
                hold(action["kind"] in ("walk", "open", "put_on", "put_in"), f"{line}: {action}")
            else:
                room = self.so.room(target, step - 1)
                hold(target in touched or room in touched, f"{line}: {action}")

    def _outcome(self, agent: int, macro: str, how: str, step: int, line: str) -> None:
        kind, target = self.macro(macro)
        moment = self.so.moments[step]
        is_so = {
            "goexplore": moment.rooms[agent] == target,
            "gocheck": target in moment.open and self.so.is_seen(agent, target, step),
            "gograb": target in moment.hands[agent],
            "goput": not any(
                self.so.things[held].name == goal.name
                for held in moment.hands[agent]
                for goal in self.so.episode.goals
                if goal.target == target
            ),
            "wait": True,
        }[kind]
        if how == "done":
            hold(is_so, line)
        elif how == "needed no step":
            hold(is_so or target in moment.open, line)
        elif kind != "wait" or how not in ("interrupted", "under way"):
            hold(not is_so or "nothing in hand" in how, line)
        if found := re.fullmatch(r"failed: (\w+) holds it", how):
            hold(target in moment.hands[_number(found[1], line)], line)
        if how == "failed: no hand is free":
            hold(len(moment.hands[agent]) > 1, line)

    def macro(self, text: str) -> tuple[str, int]:
        if text == "wait":
            return "wait", -1
        found = re.fullmatch(rf"(goexplore|gocheck|gograb|goput) {ONE}", text)
        if found is None:
            raise UntrueError(f"cannot be read: {text!r}")
        return found[1], self.named(found[2], found[3])

    # -- task, progress, options -----------------------------------------------------------------------

    def task(self, text: str) -> None:
        told = re.findall(rf"put (\d+) ([^ ]+) (on|inside) {ONE}", text)
        goals = [(str(g.count), g.name, g.relation, g.target) for g in self.so.episode.goals]
        hold([(n, what, where, self.named(name, i)) for n, what, where, name, i in told] == goals, text)

    def progress(self, text: str) -> None:
        found = re.fullmatch(r"Placed: (.+?)\. In hands: (.+?)\. Found so far: (.+?)\.", text)
        if found is None:
            raise UntrueError(f"cannot be read: {text!r}")
        placed = {key: (int(n), int(of)) for key, n, of in re.findall(r"(\w+): (\d+) of (\d+)", found[1])}
        counts = {goal.key: goal.count for goal in self.so.episode.goals}
        hold(placed == {key: (n, counts[key]) for key, n in self.so.placed(self.now).items()}, text)
        hands = {what: int(n) for n, what in re.findall(r"(\d+) (\w+)", found[2])}
        hold(hands == self.so.held(self.now), text)
        told = {what: (int(n), int(of)) for n, of, what in re.findall(r"(\d+) of (\d+) (\w+)", found[3])}
        hold({name: n for name, (n, _) in told.items() if n} == self.so.found(self.now), text)
        wanted = {goal.name: self.wanted(goal.name) for goal in self.so.episode.goals}
        hold({name: of for name, (_, of) in told.items()} == wanted, text)

    def change(self, text: str) -> None:
        """Check what is said to have changed since the last synopsis."""
        is_first = self.last_synopsis < 0
        before = max(0, self.last_synopsis)
        told = {
            what: {name: int(n) for n, name in re.findall(r"([+-]\d+) (\w+)", part)}
            for what, part in re.findall(r"(placed|in hands|found): ([^;.]+)", text)
        }
        counts = {
            "placed": (self.so.placed(before), self.so.placed(self.now)),
            "in hands": ({} if is_first else self.so.held(before), self.so.held(self.now)),
            "found": ({} if is_first else self.so.found(before), self.so.found(self.now)),
        }
        for what, (old, new) in counts.items():
            changed = {name: new.get(name, 0) - old.get(name, 0) for name in {**old, **new}}
            hold(told.get(what, {}) == {name: n for name, n in changed.items() if n}, f"{what}: {text}")

    def dialogue(self, text: str) -> None:
        """Check what the others are said to be doing, and what the manager decided against a proposal."""
        for line in text.splitlines():
            ruling = (
                rf"Manager at step (\d+): (\w+) does (wait|\w+ {ONE}), not (wait|\w+ {ONE}) as proposed: .+"
            )
            if found := re.fullmatch(ruling, line):
                step, agent = int(found[1]), _number(found[2], line)
                hold(step < self.now and self.macro(found[3]) != self.macro(found[6]), line)
                if self.so.moments[step + 1].actions[agent]["kind"] != "wait":
                    self._deed(agent, found[3], step, step + 1, line)
            elif line != "(none)":
                does = rf"(\w+) does (wait|\w+ {ONE})(?:, as (\w+|the manager) said at step (\d+): .+)?"
                if (told := re.fullmatch(does, line)) is None:
                    raise UntrueError(f"cannot be read: {line!r}")
                self._deed(_number(told[1], line), told[2], self.now - 1, self.now, line)
                if told[5]:
                    hold(told[5] in (told[1], "the manager") and int(told[6]) < self.now, line)

    def wanted(self, name: str) -> int:
        return sum(goal.count for goal in self.so.episode.goals if goal.name == name)

    def is_lacking(self, thing: int) -> bool:
        """Say whether things of this class are wanted beyond those in place and in hands."""
        name, placed = self.so.things[thing].name, self.so.placed(self.now)
        done = sum(placed[goal.key] for goal in self.so.episode.goals if goal.name == name)
        return self.wanted(name) > done + self.so.held(self.now).get(name, 0)

    def options(self, agent: int, lines: list[str], under_way: str | None) -> None:
        """Check where an option is, how far, when it was explored, and whether it is under way."""
        all_found = all(
            self.so.found(self.now).get(goal.name) == self.wanted(goal.name) for goal in self.so.episode.goals
        )
        is_there = any("; under way" in line for line in lines)
        hold(is_there or not under_way, f"under way, and yet not offered: {under_way}")
        for line in lines:
            option = re.sub(r"^\s*\[\d+\] ", "", line)
            action, *marks = option.split("; ")
            macro, *where = re.split(r"(?= in the )|, ", action, maxsplit=1)
            kind, target = self.macro(macro)
            goes_on = "under way" in marks
            hold(goes_on or kind != "gocheck" or not all_found, f"all is found, and yet offered: {line}")
            hold(goes_on or kind != "gograb" or self.is_lacking(target), f"enough is fetched: {line}")
            if kind != "wait":
                self._far(agent, kind, target, where[0].strip() if where else "", line)
            self._marked(agent, kind, target, marks, line)
            hold("about 1 steps" not in line, line)
            if goes_on and self.now:
                self._deed(agent, macro, self.now - 1, self.now, line)
            if under_way is not None:
                hold(goes_on == (under_way == macro), f"{line}; in fact: {under_way}")

    def _far(self, agent: int, kind: str, target: int, where: str, line: str) -> None:
        if where == "distance not known":
            seen = [self.so.last_seen(agent, target, self.now)]
            hold(seen == [None] and kind == "goput", line)
            return
        found = re.fullmatch(r"(?:in the ([^,]+), )?about (\d+) steps?", where)
        if found is None:
            raise UntrueError(f"cannot be read: {line!r}")
        if kind == "gograb":
            rooms = {self.so.rooms[self.so.room(target, step)] for step in range(self.now + 1)}
            hold(found[1] in rooms, line)
            return
        hold(kind == "goexplore" or found[1] == self.so.rooms[self.so.room(target, self.now)], line)
        hold(any(self.so.last_seen(each, target, self.now) is not None for each in self.team)
             or kind == "goexplore", f"nobody has seen it: {line}")  # fmt: skip
        way = self.so.way(agent, target, self.now) + (self._handling(agent, target) if kind == "goput" else 0)
        hold(abs(int(found[2]) - way) <= max(ABOUT, way / 3), f"{line}; in fact {way}")

    def _handling(self, agent: int, target: int) -> int:
        """Return the steps at a target beside the first: for further things, and for opening it."""
        hands = self.so.moments[self.now].hands[agent]
        here = {goal.name for goal in self.so.episode.goals if goal.target == target}
        load = sum(self.so.things[held].name in here for held in hands)
        opens = target in self.so.shut(self.now) and (len(hands) == 1 or load > 1)
        return load - 1 + opens

    def _marked(self, agent: int, kind: str, target: int, marks: list[str], line: str) -> None:
        told = [int(mark.rpartition(" ")[2]) for mark in marks if mark.startswith("explored at step ")]
        hold(len(told) + ("under way" in marks) == len(marks), f"cannot be read: {line!r}")
        own = self.so.explored([agent], 0, self.now).get(target) if kind == "goexplore" else None
        last = self.so.explored(self.team, 0, self.now).get(target)
        hold(bool(told) or own is None, f"{NAMES[agent]} was there at step {own}: {line}")
        hold(all(last is not None and (own or 0) <= step <= last for step in told), line)

    # -- synopses --------------------------------------------------------------------------------------

    def synopsis(self, told: dict[str, Any], *, put_together: bool) -> None:
        """Check the fields of a synopsis, and the sentences in which rules say them.

        Synopses that were `put_together` have no fields.
        """
        self.narrative(told["narrative"])
        if put_together:
            return
        seen = {
            thing: max(steps)
            for thing in self.so.things
            if self.so.things[thing].category in ("container", "object")
            and (steps := [
                step for step in range(max(0, self.last_synopsis + 1), self.now + 1)
                for agent in self.team if self.so.is_seen(agent, thing, step)
            ])
        }  # fmt: skip
        containers = {each for each in seen if self.so.things[each].category == "container"}
        moment = self.so.moments[self.now]
        hold({*told["checked"]} == containers & moment.open, f"checked: {told}")
        hold({*told["unchecked"]} == containers - moment.open, f"unchecked: {told}")
        explored = {*self.so.explored(self.team, self.last_synopsis + 1, self.now)}
        hold({*told["explored"]} == explored, f"explored: {told}")
        for found in told["found"]:
            place = moment.places[found["thing"]]
            places = (place[1], self.so.room(found["thing"], self.now))
            hold(place[0] != "held by" and found["place"] in places, f"found: {told}")

    def narrative(self, text: str) -> None:
        for sentence in re.findall(r"[^.]+\.", text):
            self._said(sentence.strip().removesuffix("."))
        hold(not text or text.endswith("."), f"cut short: {text!r}")

    def _said(self, sentence: str) -> None:
        what, _, rest = sentence.partition(": ")
        moment = self.so.moments[self.now]
        if found := re.fullmatch(rf"{ONE} is (on|inside|in) {ONE}", sentence):
            thing, place = self.named(found[1], found[2]), self.named(found[4], found[5])
            lies = moment.places[thing]
            room = lies[0] != "held by" and self.so.room(thing, self.now) == place
            hold(room if found[3] == "in" else lies == (found[3], place), sentence)
        elif found := re.fullmatch(rf"(\w+) holds ({ONE}(?: and {ONE})?)", sentence):
            hold({*self.each(found[2])} <= {*moment.hands[_number(found[1], sentence)]}, sentence)
        elif found := re.fullmatch(rf"{ONE} was searched by (\w+(?: and \w+)*)", sentence):
            since = max(0, self.last_synopsis + 1)
            for name in found[3].split(" and "):
                been = self.so.explored([_number(name, sentence)], since, self.now)
                hold(self.named(found[1], found[2]) in been, sentence)
        elif what in NAMES:
            self.deeds(NAMES.index(what), [rest])
        elif what in ("found", "placed", "in hands"):
            self.change(sentence)
        else:
            raise UntrueError(f"cannot be read: {sentence!r}")


def _number(name: str, line: str) -> int:
    hold(name in NAMES, f"no member is called so: {line}")
    return NAMES.index(name)
