"""`mneme share ask` and `mneme share grow`: agents answer with shared examples, and add to them."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Annotated
from uuid import uuid4

import typer
from pydantic import TypeAdapter, ValidationError
from rich.markup import escape

from mneme.api.pools import Pools
from mneme.api.rendering import count_of
from mneme.cli.chat.responders import Context, show_notice
from mneme.cli.derived import Fields
from mneme.cli.options import Agents, by_role
from mneme.cli.sharing.pools import LINES_HINT
from mneme.cli.sharing.retriever import Training
from mneme.cli.show import console, emit, print_shared, read_file, say
from mneme.client.workflows import REPLY, GraphRun, TeamSession, open_team
from mneme.core.errors import BadInput, first_fault
from mneme.library.agents.agent import DOMAINS
from mneme.library.agents.own import PARTED, agent_text, own_texts
from mneme.library.agents.rubric import SINGLE_POOL
from mneme.models.asking.counting import in_words
from mneme.nodes.sharing.context import GrowthContext, SharingContext
from mneme.nodes.sharing.interactive_learning import Given
from mneme.nodes.sharing.pools import agent_of, agents_in

Session = TeamSession[Pools]
ASK_GRAPHS = ("memory_sharing", "retriever_training")
GROWTH_GRAPHS = ("interactive_learning", "retriever_training")
STANDARD = TypeAdapter(Given)
WIDE = 100
PRINTED_FIELDS = [
    *("answer", "score", "stored", "why", "key", "pool", "shown", "retriever"),
    *("answered_by", "scored_by", "asked"),
]


def members_text(domain: str, named: str) -> str:
    """Return the text of a growth's agents: one's own agents of a domain, and the named one.

    Raises BadInput for a domain without agents, and for an agent of another domain.
    """
    given, own = agent_text(named), own_texts(domain)
    if given and (other := agent_of(given)).domain != domain:
        raise BadInput(
            f"The agent {other.name} is of the domain {other.domain}, not of {domain}.",
            f"Give --domain {other.domain}, or another agent.",
        )
    if not (given or own or domain in DOMAINS):
        known = dict.fromkeys([*DOMAINS, *(each.domain for each in agents_in(own_texts()))])
        raise BadInput(f'There is no domain "{domain}".', f"Domains: {', '.join(known)}.")
    return PARTED.join(filter(None, [own, given]))


def answerers_of(given: Sequence[str], agents: str) -> Context:
    """Return the default responder, and those of single agents, from words MODEL and AGENT=MODEL."""
    everyone, single = by_role(given, agents)
    return {"answerer": everyone, "answerers": ", ".join(single)}


OWN_PARAMETERS = "agent answerer answerers"
Answerer = Annotated[
    list[str],
    typer.Option(
        "--answerer",
        help="Who answers the questions; default: --agents. AGENT=MODEL: for this agent; may be repeated.",
    ),
]


async def ask(
    question: Annotated[str, "What the agent should write."],
    agent: Annotated[str, "A shipped agent, one of yours, or an agent's YAML file.", "--agent"],
    context: Annotated[Context, Fields(SharingContext, without=OWN_PARAMETERS)],
    agents: Agents = "auto",
    answerer: Answerer = [],  # noqa: B006  (typer makes a new list of it)
    thread: Annotated[
        str, "Name of a conversation; earlier turns are stored with the pair.", "--thread -t"
    ] = "",
    train: Annotated[bool, "Train the retriever on the stored pair."] = True,
) -> None:
    """Ask an agent: it sees similar pairs as examples; a good answer is added to the pool."""
    context |= {"agent": agent_text(agent), **answerers_of(answerer, agents)}
    await show_notice(context["answerer"], context["scorer"], context["grader"])
    async with open_team(Pools, context["team"], *ASK_GRAPHS) as session:
        await check_rubric(session.on, agent_of(context["agent"]).domain, context)
        config = await session.thread("memory_sharing", thread or uuid4().hex)
        left, _ = await session.flows.left_at("memory_sharing", config)
        if left:  # finish a question that a killed process left
            await GraphRun(session.flows, "memory_sharing", None, config, context).end()
        run = GraphRun(session.flows, "memory_sharing", {"question": question}, config, context, REPLY)
        async for piece, is_anew in run.pieces(print_shared):
            console.print("\n\n" * is_anew + escape(piece), end="", soft_wrap=True)
        _print_outcome(run.values)
        if run.values["stored"] and train:  # after Ctrl-C the next training does it
            training = Training(session, context | {"agent": own_texts()})
            training.wake(run.values["pool"])
            _print_trained(await training.finish())


async def check_rubric(shared: Pools, domain: str, context: Context) -> None:
    """Refuse, before a model is asked, a domain that has no rubric to score its answers. Raises BadInput."""
    await shared.rubric(domain if context["pools"] == "domain" else SINGLE_POOL)


def _print_outcome(values: Context) -> None:
    emit({name: values.get(name) for name in PRINTED_FIELDS})
    scored = "not scored" if values["score"] is None else f"{values['score']} of 100 by {values['scored_by']}"
    say(f"\n\n[dim]{scored}: {escape(values['rationale'])}[/]")
    retriever = f"retriever {values['retriever']}" if values["retriever"] else "the untrained embedder"
    console.print(f"[dim]examples, found by {retriever}:{'' if values['shown'] else ' none'}[/]")
    for each in values["shown"]:
        asked = shorten(each["prompt"] or "a standard answer, without a question", WIDE)
        say(f"[dim]- {each['agent']} {each['key'][:8]}: {escape(asked)}[/]")
    console.print(
        f"{escape(values['why'])} [dim](pool {' '.join([values['pool'], values['key'][:8]]).strip()})[/]"
    )
    console.print(f"[dim]{in_words(values['asked'])}[/]")


def _print_trained(results: Sequence[str]) -> None:
    for result in results:
        say(f"[dim]training {escape(result)}[/]")


GROWING_CONTEXT = Fields(GrowthContext, without=f"{OWN_PARAMETERS} at_once laps")


async def grow(
    domain: Annotated[str, "The domain whose agents ask each other.", "--domain"],
    context: Annotated[Context, GROWING_CONTEXT],
    file: Annotated[
        Path | None, 'Standard answers, JSON Lines: {"agent": "sonnet", "answer": "…"}.', "--from"
    ] = None,
    name: Annotated[str, "The run's id; the id of a killed run continues it.", "--id"] = "",
    agent: Annotated[str, "One more agent beside the domain's and yours: its name or YAML file."] = "",
    agents: Agents = "auto",
    answerer: Answerer = [],  # noqa: B006  (typer makes a new list of it)
) -> int:
    """Grow a pool: agents write questions to standard answers and answer them."""
    context |= {"agent": members_text(domain, agent), **answerers_of(answerer, agents)}
    standards = standards_of(file)
    await show_notice(context["answerer"], context["scorer"], context["grader"])
    async with open_team(Pools, context["team"], *GROWTH_GRAPHS) as session:
        await check_rubric(session.on, domain, context)
        name = name or uuid4().hex[:8]
        config = await session.thread("interactive_learning", name, domain)
        left, _ = await session.flows.left_at("interactive_learning", config)
        given = None if left else {"domain": domain, "standards": standards}
        begun = f"continuing the run {name}" if left else f"run {name}"
        console.print(f"{begun}; after a kill, --id {name} continues it", style="dim", markup=False)
        training = Training(session, context | {"agent": own_texts()})
        run = GraphRun(session.flows, "interactive_learning", given, config, context)
        try:
            async for event in run:
                if event["step"] == "exchange" and (event["stored"] or event["known"]):
                    training.wake(event["pool"])
                _print_step(event)
            trained = await training.finish()
        finally:  # after Ctrl-C nobody waits for a training; the next one learns what is left
            await training.leave()
    _print_growth(run.values, trained)
    return int(bool(run.values["failed"]) and not run.values["stored"])


def standards_of(file: Path | None) -> list[Given]:
    """Read standard answers from JSON Lines of agent and answer. Raises BadInput with the line."""
    if file is None:
        return []
    found = list[Given]()
    for number, line in enumerate(read_file(file, LINES_HINT).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(STANDARD.validate_json(line))
        except ValidationError as error:
            message = f"{file}, line {number}: {first_fault(error, 'the line')}"
            raise BadInput(message, 'Each line is like {"agent": "sonnet", "answer": "…"}.') from error
    return found


def _print_step(event: Context) -> None:
    if event["step"] == "choose":
        standards, calls = count_of(event["standards"], "standard answer"), event["calls"]
        console.print(f"[dim]round {event['lap']}: {standards}; {calls} of {event['budget']} calls[/]")
    elif event["step"] == "exchange":
        sign = "[green]+[/]" if event["stored"] else "[dim]·[/]"
        scored = "  -" if event["score"] is None else f"{event['score']:3}"
        console.print(f"{sign} {scored} [cyan]{event['agent']:<10}[/] {escape(event['question'][:WIDE])}")


def _print_growth(values: Context, trained: list[str]) -> None:
    names = ("pool", "memories", "known", "rejected", "failed", "why", "asked")
    emit({name: values[name] for name in names} | {"stored": len(values["stored"]), "trained": trained})
    console.print(
        f"{len(values['stored'])} stored, {values['known']} there before, "
        f"{values['rejected']} not good enough, {len(values['failed'])} failed, "
        f"{values['asked']['calls']} calls; the pool {values['pool']} has {values['memories']} pairs. "
        f"{values['why']}"
    )
    console.print(f"[dim]{in_words(values['asked'])}[/]")
    for failure in values["failed"]:
        say(f"[red]failed[/] {escape(failure['what'][:WIDE])}: {escape(failure['why'])}")
    _print_trained(trained)
