"""How rules answer the questions of `prompts/discussion/design_judge.py`.

Rules only count what can be counted, and say so in each justification: a dozen components of which something
is said make a 10.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from mneme.prompts.discussion import design_judge as questions
from mneme.prompts.discussion.design_judge import Design, Judgement, Scored
from mneme.prompts.discussion.document import UNSAID
from mneme.rules.discussion.design_knowledge import OPEN, platform_of
from mneme.rules.registry import rule

FULL = 12
"""The number of components that must be described for the highest score."""


COUNTED = "Counted by rules, not judged:"


SCALE = r"scal|shard|partition|elastic|distribut|throughput|buffer|burst|batch|volume|capacity|unlimited"


FAIL = (
    r"fail|fault|retr|replica|backup|dead-letter|idempoten|recover|durable|checkpoint|alert|monitor|lost|loss|"
    r"restore|fallback|rollback|late data|versioning|offline"
)


COST = r"cost|cheap|budget|spot|bill|expens|egress|tier|idle|price|hours|serverless|saves"


@rule(questions.judge_design)
def judge_design(given: Design) -> Judgement:
    """Count the components that cover scale, failures and costs, can be built, and are justified."""
    components = _components(given)
    return Judgement(
        scalability=_counted(components, "speak of load or scale", lambda each: _speaks(each, SCALE)),
        reliability=_counted(
            components, "speak of failures or of keeping data", lambda each: _speaks(each, FAIL)
        ),
        usability=_counted(
            components, "have a design and details", lambda each: _has(each, "design", "details")
        ),
        cost_effectiveness=_counted(components, "speak of cost", lambda each: _speaks(each, COST)),
        documentation=_counted(components, "have pros and cons", lambda each: _has(each, "pros", "cons")),
        completeness=_share(
            len(_present(given)), len(given.specification), "parts of the specification are there"
        ),
        consistency=_share(
            len(_consistent(given)), len(components), "components fit the platform and are there once"
        ),
    )


def _components(design: Design) -> list[dict[str, str]]:
    """Return the texts of the file's numbered items."""
    file: dict[str, Any] = json.loads(design.document)
    return [
        {part: text for part, text in value.items() if isinstance(text, str)}
        for value in file.values()
        if isinstance(value, dict) and "name" in value
    ]


def _present(design: Design) -> list[str]:
    """Return the parts of the specification that the file has and that say something."""
    file: dict[str, Any] = json.loads(design.document)
    said = {name for name, value in file.items() if value not in ("", UNSAID, {}, None)}
    parts = [
        {name for name, text in each.items() if text not in ("", UNSAID)} for each in _components(design)
    ]
    everywhere = set.intersection(*parts) if parts else set()
    return [name for name in design.specification if name in said or name in everywhere]


def _share(found: int, of: int, what: str) -> Scored:
    score = 1 + round(9 * found / of) if of else 1
    return Scored(justification=f"{COUNTED} {found} of {of} {what}.", score=score)


def _counted(components: list[dict[str, str]], what: str, holds: Callable[[dict[str, str]], bool]) -> Scored:
    found = sum(map(holds, components))
    score = 1 + round(9 * min(1.0, found / FULL))
    return Scored(justification=f"{COUNTED} {found} of {len(components)} components {what}.", score=score)


def _speaks(component: dict[str, str], form: str) -> bool:
    said = " ".join(text for name, text in component.items() if name != "name" and text != UNSAID)
    return re.search(form, said, re.IGNORECASE) is not None


def _has(component: dict[str, str], *parts: str) -> bool:
    return all(component.get(part, UNSAID).strip() not in {"", UNSAID} for part in parts)


def _consistent(design: Design) -> list[dict[str, str]]:
    """Return the components whose name is unique and that belong to the platform."""
    file: dict[str, Any] = json.loads(design.document)
    kinds = [_kind(each) for each in _components(design)]
    platform = str(file.get("Platform", ""))
    return [
        each
        for each, kind in zip(_components(design), kinds, strict=True)
        if kinds.count(kind) == 1 and platform_of(each.get("name", "")) in {OPEN, platform_of(platform)}
    ]


def _kind(component: dict[str, str]) -> str:
    """Return what kind of component it is: its name without its choice."""
    return component.get("name", "").partition("(")[0].strip().lower()
