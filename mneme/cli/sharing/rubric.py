"""`mneme share rubric …`: rubrics that score pairs: drafted by a model, reviewed by a person, frozen."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.types import Command
from rich.markup import escape

from mneme.api.pools import Pools
from mneme.cli.chat.talk import show_notice
from mneme.cli.show import console, print_json, print_result, print_table
from mneme.client.home import open_operations
from mneme.client.sharing import SharingSession, open_sharing
from mneme.core.errors import BadInput
from mneme.library.agents.own import own_texts
from mneme.library.agents.reading import text_of
from mneme.library.agents.rubric import Rubric, read_rubric
from mneme.nodes.sharing.pools import FrozenRubric, agents_in

Context = dict[str, Any]


def print_rubrics(found: Sequence[FrozenRubric]) -> None:
    """Print each domain's current rubric as a table."""
    rows = (
        [each.rubric.name, str(each.version), str(len(each.rubric.criteria)), _who(each), each.reason]
        for each in found
    )
    print_table("", ("domain", "version", "criteria", "from", "why"), rows)


def _who(found: FrozenRubric) -> str:
    """Say where a rubric comes from: shipped, or who drafted it and who approved it."""
    if not found.version:
        return "as shipped"
    return f"drafted by {found.drafted_by}, approved by {found.by}" if found.drafted_by else f"by {found.by}"


def print_frozen(found: FrozenRubric) -> None:
    """Print a rubric with its version, and who approved it."""
    console.print(f"[bold]{escape(found.rubric.title)}[/], version {found.version} {escape(_who(found))}")
    console.print(escape(found.rubric.as_text()), soft_wrap=True)


async def freeze(team: str, file: Path, reason: str, as_json: bool) -> None:
    """Freeze a rubric from a file as the next version."""
    rubric = read_rubric(text_of(file), str(file))
    async with open_operations(Pools, team) as shared:
        print_result(await shared.freeze(rubric, reason), as_json, print_frozen)


async def design(domain: str, tasks: list[str], wishes: str, context: Context, as_json: bool) -> None:
    """Let a model draft a rubric; the draft then waits for review."""
    await show_notice(context["designer"])
    async with open_sharing(context["team"], "rubric_design") as session:
        config = await session.design(domain)
        left, _ = await session.flows.left_at("rubric_design", config)
        if "review" in left:
            raise BadInput(f"A draft for {domain} waits for review.", REVIEW.format(domain=domain))
        known = tasks or [each.task for each in agents_in(own_texts(domain))]
        given = None if left else {"domain": domain, "tasks": known, "wishes": wishes}
        await session.flows.invoke("rubric_design", given, config, context)
        await _print_waiting(session, domain, as_json)


REVIEW = "Decide: `mneme share rubric review {domain}` with --approve, --file, --wishes or --reject."


async def _print_waiting(session: SharingSession, domain: str, as_json: bool) -> None:
    left, values = await session.flows.left_at("rubric_design", await session.design(domain))
    if as_json:
        print_json({"rubric": values["rubric"], "version": values["version"], "waits": "review" in left})
        return
    console.print(escape(Rubric.model_validate(values["rubric"]).as_text()), soft_wrap=True)
    if values["version"]:
        console.print(f"Frozen as version {values['version']}.")
    else:
        console.print(REVIEW.format(domain=domain) if "review" in left else "Rejected: nothing was frozen.")


async def review(domain: str, decision: Context, context: Context, as_json: bool) -> None:
    """Decide on the draft that waits."""
    if decision["decision"] == "redraft":
        await show_notice(context["designer"])
    async with open_sharing(context["team"], "rubric_design") as session:
        config = await session.design(domain)
        left, _ = await session.flows.left_at("rubric_design", config)
        if "review" not in left:
            raise BadInput(
                f"No draft for {domain} waits for review.",
                f"`mneme share rubric design {domain}` writes one.",
            )
        answer: Any = Command(resume=decision)
        await session.flows.invoke("rubric_design", answer, config, context)
        await _print_waiting(session, domain, as_json)


def decision_of(approve: bool, file: Path | None, wishes: str, reject: bool, reason: str) -> Context:
    """Return a person's decision. Raises BadInput for none or several, and for an invalid rubric file."""
    if sum([approve, file is not None, bool(wishes), reject]) != 1:
        raise BadInput(
            "The decision is missing.", "Give exactly one of --approve, --file, --wishes, --reject."
        )
    answer = {"reason": reason, "by": "user"}
    if file is not None:
        criteria = read_rubric(text_of(file), str(file)).criteria
        return answer | {"decision": "edit", "criteria": [each.model_dump() for each in criteria]}
    if wishes:
        return answer | {"decision": "redraft", "wishes": wishes}
    return answer | {"decision": "approve" if approve else "reject"}
