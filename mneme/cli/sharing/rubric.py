"""`mneme share rubric …`: rubrics that score pairs: drafted by a model, reviewed by a person, frozen."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from rich.markup import escape

from mneme.api.pools import Pools
from mneme.api.rendering import origin_of
from mneme.cli.chat.responders import Context, show_notice
from mneme.cli.derived import Fields, arguments_of
from mneme.cli.options import Reason, Team
from mneme.cli.show import console, emit, print_result, say
from mneme.client.home import open_operations
from mneme.client.workflows import GraphRun, TeamSession, open_team
from mneme.core.errors import BadInput
from mneme.core.yaml_files import text_of
from mneme.library.agents.own import own_texts
from mneme.library.agents.rubric import Rubric, read_rubric
from mneme.nodes.sharing.context import DesignContext
from mneme.nodes.sharing.pools import FrozenRubric, agents_in

RUBRIC_GRAPH = "rubric_design"
DomainName = Annotated[str, typer.Argument(help="A domain, or single_pool.")]
Designing = Annotated[Context, Fields(DesignContext)]
Calibration = Annotated[Context, Fields(arguments_of(Pools.OFFERED["calibrate"]), without="agent")]
REASON = "decided on the command line"


def print_frozen(found: FrozenRubric) -> None:
    """Print a rubric with its version, and who approved it."""
    console.print(
        f"[bold]{escape(found.rubric.title)}[/], version {found.version} {escape(origin_of(found))}"
    )
    say(escape(found.rubric.as_text()))
    for each in found.thresholds:
        say(escape(f"Kept {each}"))


async def calibrate(calibration: Calibration, team: Team = "local") -> None:
    """Find the score above which pairs are kept: good answers and damaged ones are graded."""
    await show_notice(calibration["agents"])
    async with open_operations(Pools, team) as shared:
        found = await shared.calibrate(**calibration, agent=own_texts())
    emit(found)
    say(escape(f"Kept {found}"))


async def freeze(
    file: Annotated[Path, "A rubric in YAML."],
    reason: Reason = REASON,
    team: Team = "local",
) -> None:
    """Freeze a rubric of your own as the next version."""
    rubric = read_rubric(text_of(file), str(file))
    async with open_operations(Pools, team) as shared:
        print_result(await shared.freeze(rubric, reason), print_frozen)


async def design(
    domain: DomainName,
    context: Designing,
    tasks: Annotated[
        list[str] | None,
        "For a new domain without agents of yours: what is written in it; repeatable.",
        "--task",
    ] = None,
    wishes: Annotated[str, "What the rubric should measure, in your words."] = "",
) -> None:
    """Draft a rubric; it waits for your review."""
    await show_notice(context["designer"])
    async with _waiting(domain, context) as (session, config, left):
        if "review" in left:
            raise BadInput(f"A draft for {domain} waits for review.", REVIEW.format(domain=domain))
        known = tasks or [each.task for each in agents_in(own_texts(domain))]
        given = None if left else {"domain": domain, "tasks": known, "wishes": wishes}
        await GraphRun(session.flows, RUBRIC_GRAPH, given, config, context).end()


REVIEW = "Decide: `mneme share rubric review {domain}` with --approve, --file, --wishes or --reject."


@asynccontextmanager
async def _waiting(
    domain: str, context: Context
) -> AsyncIterator[tuple[TeamSession[Pools], RunnableConfig, Sequence[str]]]:
    """Open the run that designs a domain's rubric, with the steps that it has left; then print the rubric."""
    async with open_team(Pools, context["team"], RUBRIC_GRAPH) as session:
        config = await session.thread(RUBRIC_GRAPH, domain)
        yield session, config, (await session.flows.left_at(RUBRIC_GRAPH, config))[0]
        left, values = await session.flows.left_at(RUBRIC_GRAPH, config)
    emit({"rubric": values["rubric"], "version": values["version"], "waits": "review" in left})
    say(escape(Rubric.model_validate(values["rubric"]).as_text()))
    if values["version"]:
        console.print(f"Frozen as version {values['version']}.")
    else:
        console.print(REVIEW.format(domain=domain) if "review" in left else "Rejected: nothing was frozen.")


async def review(
    domain: DomainName,
    context: Designing,
    approve: Annotated[bool, "Freeze the draft as the next version."] = False,
    file: Annotated[Path | None, "Freeze this YAML rubric instead."] = None,
    wishes: Annotated[str, "Write a new draft with these wishes."] = "",
    reject: Annotated[bool, "Reject the draft."] = False,
    reason: Reason = REASON,
) -> None:
    """Approve, change or reject the draft."""
    decision = _decision(approve, file, wishes, reject, reason)
    if decision["decision"] == "redraft":
        await show_notice(context["designer"])
    async with _waiting(domain, context) as (session, config, left):
        if "review" not in left:
            raise BadInput(
                f"No draft for {domain} waits for review.",
                f"`mneme share rubric design {domain}` writes one.",
            )
        answer: Any = Command(resume=decision)
        await GraphRun(session.flows, RUBRIC_GRAPH, answer, config, context).end()


def _decision(approve: bool, file: Path | None, wishes: str, reject: bool, reason: str) -> Context:
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
