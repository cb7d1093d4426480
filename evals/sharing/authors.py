"""Read the data of the Memory Sharing paper's authors from a clone of their repository, which has no licence.

Their code (github.com/GHupppp/InteractiveMemorySharingLLM) holds the items, lines of chat messages:
`*Pool.jsonl` is archived before a run, of `*Problem.jsonl` the questions are asked, and `*Test.jsonl` is the
test. The first two do not name the agent: it follows from the order of the lines, in thirds, but for poems,
whose agent follows from the text. Nothing of it is shipped here.
"""

import json
import re
from pathlib import Path

from mneme.core.errors import BadInput
from mneme.evals.sharing.data import Item, Part, Split, likenesses

FOLDERS = {
    "literary_creation": "Literal Creation",
    "unconventional_logic": "Logic Problem_Solving",
    "plan_generation": "Plan Generation",
}
TESTS = {
    "limerick": "limerick", "lvshi": "wuyanlvshi", "sonnet": "sonnet", "puns": "pun", "puzzle": "puzzle",
    "riddles": "riddle", "fitness": "fitness", "study": "study", "travel": "travel",
}  # fmt: skip
"""Beginning of a test file's name -> the agent."""
ORDERS = {
    "LogicPool": ("puzzle", "pun", "riddle"),
    "LogicProblem": ("riddle", "pun", "puzzle"),
    "PlanPool": ("travel", "study", "fitness"),
    "PlanProblem": ("travel", "study", "fitness"),
}
"""Whose items a file has, a third each, in this order."""
SAME = 80.0
"""Likeness, of 100, from which on two items are one."""
FORMAT = "Give a clone of github.com/GHupppp/InteractiveMemorySharingLLM."


def read_authors(folder: Path, domain: str) -> Split:
    """Return a domain's items as the authors split them. Raises BadInput for missing or broken files."""
    home, made = folder / FOLDERS[domain], Split()
    files = sorted(home.glob("*.jsonl"))
    if not files:
        raise BadInput(f"{home} holds no items.", FORMAT)
    for path in files:
        made.part(_part(path)).extend(_items(path, domain))
    return made


def read_all(folder: Path) -> Split:
    """Return the items of all domains as the authors split them. Raises BadInput."""
    made = Split()
    for domain in FOLDERS:
        for whole, part in zip(made, read_authors(folder, domain), strict=True):
            whole.extend(part)
    return made


def is_authors(folder: Path) -> bool:
    """Say whether a folder is a clone of theirs."""
    return (folder / FOLDERS["unconventional_logic"]).is_dir()


def _part(path: Path) -> Part:
    if path.stem.endswith("Test"):
        return "test"
    return "archived" if path.stem.endswith("Pool") else "new"


def _items(path: Path, domain: str) -> list[Item]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    items = list[Item]()
    for number, line in enumerate(lines):
        question, answer = _pair(line, f"{path}, line {number + 1}")
        if answer.strip():  # some of theirs have none
            agent = _agent(path.stem, number, len(lines), question, answer)
            items.append(
                Item(id=f"{domain}/{path.stem}/{number + 1}", question=question, answer=answer, agent=agent)
            )
    return items


def _pair(line: str, where: str) -> tuple[str, str]:
    try:
        user, assistant = json.loads(line)["messages"][:2]
        return str(user["content"]), str(assistant["content"])
    except (ValueError, KeyError, TypeError) as broken:
        raise BadInput(f"{where} is no pair of chat messages: {broken!r}.", FORMAT) from broken


def _agent(stem: str, number: int, count: int, question: str, answer: str) -> str:
    if stem.endswith("Test"):
        return TESTS[stem.removesuffix("Test")]
    if stem in ORDERS:
        third = 20 if stem.endswith("Pool") else 40
        return ORDERS[stem][min(number // third, 2)]
    if re.search("[\u3400-\u9fff]", question + answer):
        return "wuyanlvshi"
    return "limerick" if answer.startswith("There once") else "sonnet"


def clean(tests: list[Item], pool: list[Item]) -> list[Item]:
    """Return the test items of which neither question nor answer is, nearly, in the pool."""
    alike = likenesses(tests, pool, SAME) >= SAME
    return [item for row, item in enumerate(tests) if not alike[row].any()]
