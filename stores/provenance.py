"""Provenance: which records were made from which, and which are therefore out of date.

A version names the versions that it was made from (`Source.records`). Whether these have changed since is not
stored but determined on request. So a correction reaches all derived records, over any number of steps, at
the moment when it is written, and a killed process leaves nothing half marked.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import Link, heads_of, links_of, versions_of
from mneme.stores.ledger.records import Change, Namespace, Source, Version, record_id, texts_in

MAX_TRACED = 1000
"""Maximum records that a trace visits, nearest first."""
SETTLED_NUMBER = 0
"""The number in references to a forgotten source, once a person or trials found the record still valid."""
VERDICTS = "settled"
"""Namespace of verdicts whether two records contradict; a verdict is erased with either record."""
FALLEN_STATUSES = {"deprecated", "disputed"}


def made_from(change: Change, names: Sequence[str]) -> Change:
    """Return a change that names the shown records as sources, so that what is made of them can be traced."""
    records = [each.partition("#")[0] for each in names]
    source = change.source
    together = list(dict.fromkeys([*source.records, *records]))
    return change.model_copy(update={"source": source.model_copy(update={"records": together})})


async def as_now(ledger: Ledger, head: Version, change: Change) -> Change:
    """Return a change that names the current versions of a record's sources, so that it is up to date."""
    sources = [link.source for link in await ledger.read(links_of, [head.record])]
    live = await ledger.read(heads_of, sources)  # also retired ones; only forgotten ones are missing
    named = [live[each].reference if each in live else f"{each}@{SETTLED_NUMBER}" for each in sources]
    return change.model_copy(update={"source": Source(records=named)})


def everything(_: Namespace) -> bool:
    """Return True: the asker may see every namespace."""
    return True


async def stale(
    ledger: Ledger, records: Iterable[str], sees: Callable[[Namespace], bool] = everything
) -> dict[str, str]:
    """Return the reasons why records are out of date, by id; records that are up to date are left out.

    A source makes a record stale if it was forgotten, retired, deprecated or disputed, if its content has
    changed, or if it is stale itself. Its reason is included only if the asker `sees` its namespace.
    """
    links = [link for found in (await _walked(ledger, records)).values() for link in found]
    heads = await ledger.read(heads_of, [*{link.source for link in links}])
    seen = await ledger.read(versions_of, [(link.source, link.number) for link in links])
    why: dict[str, str] = {}
    made_of = defaultdict[str, list[str]](list)
    for link in links:
        made_of[link.source].append(link.record)
        is_settled = link.number == SETTLED_NUMBER
        reason = _fallen(seen.get((link.source, link.number)), heads.get(link.source), sees)
        if reason and not is_settled:  # several may have fallen; the first is told
            why.setdefault(link.record, reason)
    spreading = [*why]
    for source in spreading:  # it grows, but each record is added only once
        for record in made_of[source]:
            if record not in why:
                why[record] = why[source].replace(
                    "What it was made from", "Something that its source rests on", 1
                )
                spreading.append(record)
    return {record: why[record] for record in records if record in why}


async def current_keys(ledger: Ledger, namespace: Namespace, keys: Iterable[str]) -> set[str]:
    """Return the keys of those records of a namespace that are not out of date."""
    records = {record_id(namespace, key): key for key in keys}
    why = await stale(ledger, records)
    return {key for record, key in records.items() if record not in why}


def pairs_in(references: Iterable[str]) -> list[tuple[str, int]]:
    """Return (record, version number) of each reference."""
    return [(record, int(number)) for record, _, number in (each.partition("@") for each in references)]


async def outdated(
    ledger: Ledger, shown: Iterable[tuple[str, int]], sees: Callable[[Namespace], bool] = everything
) -> dict[tuple[str, int], str]:
    """Return the reasons why the shown versions are out of date; up-to-date versions are left out."""
    used = [*shown]
    records = [record for record, _ in used]
    then, now = await ledger.read(versions_of, used), await ledger.read(heads_of, records)
    why, found = await stale(ledger, records, sees), dict[tuple[str, int], str]()
    for each in used:
        head = now.get(each[0])
        is_head = head is not None and head.live and head.version == each[1]
        reason = "" if is_head else _fallen(then.get(each), head, sees)
        if reason or each[0] in why:
            found[each] = reason.replace("What it was made from", "It", 1) or why[each[0]]
    return found


def _fallen(then: Version | None, now: Version | None, sees: Callable[[Namespace], bool]) -> str:
    """Return what happened to a source since it was used; empty if its content is the same."""
    if now is None:
        return "What it was made from was forgotten."
    why = f": {now.change.reason}" if sees(now.namespace) else "."
    if not now.live:
        return f"What it was made from was retired{why}"
    if now.value.get("status") in FALLEN_STATUSES:
        return f"What it was made from is {now.value['status']}{why}"
    if then is None or _says(then) != _says(now):
        return f"What it was made from was corrected{why}"
    return ""


def _says(version: Version) -> tuple[Any, ...]:
    """Return the parts of a version that matter to derived records: not its outcomes or ratings."""
    return version.text or version.value, version.value.get("until") or None


async def _walked(
    ledger: Ledger, records: Iterable[str], *, forward: bool = False
) -> Mapping[str, list[Link]]:
    """Return the links of records and of all that they lead to, by record (`forward`: by source)."""
    walked: dict[str, list[Link]] = {}
    next_ones = {*records}
    while next_ones:
        walked |= {each: [] for each in next_ones}  # also without links, so that a cycle ends
        found = await ledger.read(links_of, next_ones, forward=forward)
        for link in found:
            walked[link.source if forward else link.record].append(link)
        next_ones = {link.record if forward else link.source for link in found} - walked.keys()
    return walked


async def made_of(ledger: Ledger, records: Iterable[str]) -> list[str]:
    """Return the ids of all records made from these, over any number of steps; not their own."""
    given = [*records]
    return [each for each in await _walked(ledger, given, forward=True) if each not in given]


async def told_again(
    ledger: Ledger, records: Iterable[str], tells: Callable[[str], bool]
) -> tuple[list[Version], list[Version]]:
    """Return records made from these: those that repeat the content, with all below them; and the rest."""
    again, rest = list[Version](), list[Version]()
    for head in (await ledger.read(heads_of, await made_of(ledger, records))).values():
        below = await ledger.records((*head.namespace, head.key), limit=None, include_retired=True)
        versions = [
            each for part in (head, *below) for each in await ledger.history(part.namespace, part.key)
        ]
        is_told = any(tells(text) for version in versions for text in texts_in(version.value))
        if is_told or head.namespace[2:] == (VERDICTS,):
            again += [head, *below]
        else:
            rest.append(head)
    return again, rest


async def steps(ledger: Ledger, record: str, *, forward: bool = False) -> list[tuple[int, Link]]:
    """Return how a record was made, or `forward`, what was made from it: each link with its distance."""
    links, found = await _walked(ledger, [record], forward=forward), list[tuple[int, Link]]()
    known, waiting = {record}, [(1, record)]
    for distance, each in waiting:
        for link in links[each]:
            other = link.record if forward else link.source
            found.append((distance, link))
            if other not in known:
                known.add(other)
                waiting.append((distance + 1, other))
    return found[:MAX_TRACED]
