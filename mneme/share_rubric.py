"""`mneme share rubric …`: what pairs are scored by; drafted by a model, reviewed by a person, frozen."""

from pathlib import Path
from typing import Any

from langgraph.types import Command
from rich.markup import escape

from agents.reading import text_of
from agents.rubric import Rubric, read_rubric
from mneme.errors import BadInput
from mneme.home import open_operations
from mneme.sharing import SharingSession, open_sharing
from mneme.sharing_operations import SharingOperations
from mneme.show import console, print_json, print_table
from mneme.talk import show_notice
from stores.rubrics import Frozen

Context = dict[str, Any]


async def list_(team: str, as_json: bool) -> None:
    """List what each domain is scored by now."""
    async with open_operations(SharingOperations, team) as shared:
        found = await shared.rubrics()
    if as_json:
        for each in found:
            print_json(each)
        return
    rows = (
        [each.rubric.name, str(each.version), str(len(each.rubric.criteria)), each.by, each.reason]
        for each in found
    )
    print_table("", ("domain", "version", "criteria", "by", "why"), rows)


async def show(team: str, domain: str, version: int | None, as_json: bool) -> None:
    """Print a domain's rubric."""
    async with open_operations(SharingOperations, team) as shared:
        found = await shared.rubric(domain, version)
    _print_frozen(found, as_json)


def _print_frozen(found: Frozen, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    console.print(f"[bold]{escape(found.rubric.title)}[/], version {found.version} by {escape(found.by)}")
    console.print(escape(found.rubric.as_text()), soft_wrap=True)


async def freeze(team: str, file: Path, reason: str, as_json: bool) -> None:
    """Freeze a person's own rubric as the next version."""
    rubric = read_rubric(text_of(file), str(file))
    async with open_operations(SharingOperations, team) as shared:
        _print_frozen(await shared.freeze(rubric, reason), as_json)


async def design(domain: str, tasks: list[str], wishes: str, context: Context, as_json: bool) -> None:
    """Let a model draft a rubric; the draft waits for its review."""
    await show_notice(context["designer"])
    async with open_sharing(context["team"], "rubric_design") as session:
        config = await session.design(domain)
        left, _ = await session.flows.left_at("rubric_design", config)
        if "review" in left:
            raise BadInput(f"A draft for {domain} waits for its review.", REVIEW.format(domain=domain))
        given = None if left else {"domain": domain, "tasks": tasks, "wishes": wishes}
        await session.flows.invoke("rubric_design", given, config, context)
        await _print_waiting(session, domain, as_json)


REVIEW = "`mneme share rubric review {domain}` with --approve, --file, --wishes or --reject."


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


async def review(domain: str, said: Context, context: Context, as_json: bool) -> None:
    """Answer the design that waits."""
    async with open_sharing(context["team"], "rubric_design") as session:
        config = await session.design(domain)
        left, _ = await session.flows.left_at("rubric_design", config)
        if "review" not in left:
            raise BadInput(
                f"No draft for {domain} waits for a review.",
                f"`mneme share rubric design {domain}` makes one.",
            )
        answer: Any = Command(resume=said)
        await session.flows.invoke("rubric_design", answer, config, context)
        await _print_waiting(session, domain, as_json)


def word_of(approve: bool, file: Path | None, wishes: str, reject: bool, reason: str) -> Context:
    """Return a person's word. Raises BadInput for none or for several, and for a rubric that is none."""
    if sum([approve, file is not None, bool(wishes), reject]) != 1:
        raise BadInput("What is your word?", "Give one of --approve, --file, --wishes, --reject.")
    said = {"reason": reason, "by": "user"}
    if file is not None:
        criteria = read_rubric(text_of(file), str(file)).criteria
        return said | {"decision": "edit", "criteria": [each.model_dump() for each in criteria]}
    if wishes:
        return said | {"decision": "redraft", "wishes": wishes}
    return said | {"decision": "approve" if approve else "reject"}
