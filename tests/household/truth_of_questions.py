"""The parts of a question's wording, each with the reader's check of it."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from tests.household.truth import NAMES, Reader, UntrueError, hold, sections


def under_way_in(done: str) -> str:
    """Return the action that an agent's own history says is under way."""
    found = re.findall(r"since step \d+: (.+): under way", done)
    return found[-1] if found else ""


def asked(reader: Reader, question: str, text: str, member: str) -> Iterator[Callable[[], None]]:
    """Yield a check of each part of a question's wording."""
    said = sections(text)
    if "What changed" in said:
        yield lambda: reader.change(said["What changed"])
    yield lambda: reader.task(said["Task"])
    yield lambda: reader.progress(said.get("Progress") or said["Progress now"])
    if question == "propose_action":
        agent, done = NAMES.index(member), said["What you did lately"]
        yield lambda: reader.beliefs(agent, said["What you see now"], 0, now=True)
        yield lambda: reader.beliefs(agent, said["What you believe"], 0, now=False)
        yield lambda: reader.map(said["Map"])
        yield lambda: reader.deeds(agent, done.splitlines())
        yield lambda: reader.dialogue(said["What the team said last"])
        yield lambda: reader.options(agent, said["Options"].splitlines(), under_way_in(done))
    elif question == "allocate_actions":
        for report in re.split(r"^(?=\w+ sees: )", said["Members"], flags=re.M)[1:]:
            yield from _report(reader, report.strip())
    else:
        yield from _record(reader, said)


def _report(reader: Reader, report: str) -> Iterator[Callable[[], None]]:
    found = re.fullmatch(
        r"(\w+) sees: (.*?)\n  believes: ?(.*?)\n  proposes \[\d+\](?: \(\d+ times by now\))?: .*?\n"
        r"  may do:\n(.*)",
        report,
        re.S,
    )
    if found is None:
        raise UntrueError(f"cannot be read: {report!r}")
    agent, oldest = NAMES.index(found[1]), max(0, reader.now - reader.window)
    yield lambda: reader.beliefs(agent, found[2], 0, now=True, with_shut=False)
    yield lambda: reader.beliefs(agent, found[3], oldest, now=False)
    yield lambda: reader.options(agent, found[4].splitlines(), None)


def _record(reader: Reader, said: dict[str, str]) -> Iterator[Callable[[], None]]:
    for line in said["Actions since the last synopsis"].splitlines():
        yield partial(reader.deed_of, line)
    own, nobody, rooms = said["Beliefs since the last synopsis"].partition("Explored by nobody yet: ")
    since = max(0, reader.last_synopsis + 1)
    for part in re.split(rf"^(?=(?:{'|'.join(NAMES)}): )", own, flags=re.M)[1:]:
        name, _, words = part.strip().partition(": ")
        yield partial(reader.beliefs, NAMES.index(name), words, since, now=None)
    if nobody:
        yield lambda: hold(reader.rooms(0, nobody + rooms, since), nobody + rooms)
