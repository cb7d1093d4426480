"""Carry memory across tasks (§6: memories focused on individual experience), only on request.

The newest entries of an agent's lists at the end of a discussion are copied into the next one of the same
team, marked as earlier. Not carried are single texts, such as a position or a next step, since they belong to
one task; the issues that were raised in it; and entries that rest on something corrected or retracted since.
"""

from collections.abc import Collection, Mapping
from copy import deepcopy
from itertools import islice, zip_longest
from typing import Any

from mneme.library.teams.team import CHARACTERS_PER_TOKEN, Role, empty
from mneme.nodes.context import ledger_of
from mneme.nodes.discussion.context import Table
from mneme.prompts.discussion.memory_template import MAX_ENTRIES, MAX_ENTRY_CHARS, at, size, slots
from mneme.stores.discussions.agent_memory import CarriedMemories, CarriedMemory, EndedMemory
from mneme.stores.discussions.issues import issues_of
from mneme.stores.ledger.records import Change
from mneme.stores.write_gate import near_to_any

EARLIER_PREFIX = "Earlier: "
MAX_CARRIED_SHARE = 0.5
"""Share of a memory's bound that carried entries may fill; the rest is for the task at hand."""


def begun_with(table: Table, role: Role, known: CarriedMemory | None) -> tuple[dict[str, Any], str]:
    """Return M_{n,0}, empty or with what the agent carries, and the reason."""
    if known is None:
        return empty(role.memory), "the discussion begins"
    limit = round(MAX_CARRIED_SHARE * CHARACTERS_PER_TOKEN * table.memory_tokens)
    return carried_into(role.memory, known.memory, limit), f"carried from the discussion {known.discussion}"


async def carry(table: Table, last: int) -> None:
    """Keep what every agent remembers after a discussion's last turn for the next one."""
    if not table.about.carry:
        return
    carried = CarriedMemories(ledger_of(table.runtime), table.discussions.owner, table.team.name)
    shown = [*(each.partition("#")[0] for each in table.about.shared), *table.about.carried]
    issues = [each.about for each in issues_of(await table.conversation.all(last))]
    for role in table.team.roles:
        memory = await table.discussions.memory(table.about.id, role.name).now()
        change = Change(reason="a discussion ended", actor=role.name, model=memory.model)
        left = without_issues(memory.memory, issues)
        ended = EndedMemory(memory=left, discussion=table.about.id, made_from=shown)
        await carried.keep(role.name, ended, change)


def without_issues(memory: dict[str, Any], issues: Collection[str]) -> dict[str, Any]:
    """Return a memory whose lists hold no issue of its discussion."""
    left = deepcopy(memory)
    for _, slot in slots(left):
        if isinstance(slot, list):
            # An entry may begin with a label such as `Issue raised: `.
            slot[:] = [each for each in slot if not near_to_any(each.partition(": ")[2] or each, issues)]
    return left


def carried_into(template: Mapping[str, Any], memory: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return a memory of the template with entries of the other's lists, the newest of each list in turn."""
    begun = empty(template)
    lists = [(slot, at(memory, path)) for path, slot in slots(begun) if isinstance(slot, list)]
    known = [(slot, reversed(other)) for slot, other in lists if isinstance(other, list)]
    newest = [[(slot, each) for each in entries if isinstance(each, str) and each] for slot, entries in known]
    for layer in islice(zip_longest(*newest), MAX_ENTRIES // 2):
        for slot, entry in filter(None, layer):
            # At the front, since newer entries come later in a list; a prefix is not repeated.
            slot.insert(0, f"{EARLIER_PREFIX}{entry.removeprefix(EARLIER_PREFIX)}"[:MAX_ENTRY_CHARS])
            if size(begun) > limit:
                slot.pop(0)
                return begun
    return begun
