"""The end of a discussion: the document, a person's approval if requested, the record of the end."""

from typing import Literal

from mneme.core.errors import BadAnswer
from mneme.library.teams.document import MINUTES, check, filed, lacking
from mneme.library.teams.selection import round_of
from mneme.models.asking.asking import ask, resolve
from mneme.models.asking.counting import tokens_in
from mneme.models.ollama.tokenizers import counter_of
from mneme.nodes.answers import action
from mneme.nodes.discussion.carrying import carry
from mneme.nodes.discussion.context import DiscussionRuntime, Table, who_answers
from mneme.nodes.discussion.experts import shown_to_writer
from mneme.nodes.discussion.person import Approval, ask_person
from mneme.nodes.discussion.state import State, heard
from mneme.nodes.task_memories.salvage import Parts, usable_document
from mneme.nodes.workflow import Update, counted
from mneme.prompts.discussion.document import Documenting, Outline, write_document_as
from mneme.stores.discussions.discussions import Turn

PERSON_ANSWERER = "a_person"
ENDING_FIELDS = ("document", "report", "ended", "lacks")
"""Fields that an approving person is shown, and that are stored at the end of a discussion."""


@counted
async def document(state: State, runtime: DiscussionRuntime) -> Update:
    """Let the writer write the document from its context, and check it against its schema."""
    table = await Table.of(state["discussion_id"], runtime)
    role, outlined = table.team.role(table.team.document.by), table.team.document
    who = await resolve(who_answers(role, table.context))
    if table.is_intrinsic:
        window = await shown_to_writer(table, state["turn"], await counter_of(who))
    else:
        window = await table.shown_to(role, state["turn"])
    outline = Outline(**outlined.model_dump(include=set(Outline.model_fields)))
    given = Documenting(
        **table.shown_as(role, window, await table.unsettled(state["turn"])),
        outline=outline,
        ended=state["ended"],
        last=state["turn"],
    )
    parts, complaint = await _written(given, who, state)
    lacks = lacking(outlined, parts)
    file = {} if lacks else filed(outlined, parts)
    if not (lacks or complaint):
        check(outlined, file)  # raises BadAnswer: the file has a schema of its own, beside the question's
    lacks = " ".join(filter(None, (lacks, complaint)))
    if file and MINUTES not in file:
        file[MINUTES] = await _minutes(state, table, who)
    runtime.stream_writer({"step": "document", "document": file, "ended": state["ended"], "lacks": lacks})
    return {
        "lacks": lacks,
        "document": file,
        "report": parts["report"],
        "answered_by": {**state["answered_by"], role.name: who},
        "complaints": [complaint] if complaint else [],
    }


async def _minutes(state: State, table: Table, who: str) -> Parts:
    """Describe how a document was made: who accepted, who did not, open issues, and its writer."""
    deciders, accepted = table.team.deciders, state["accepted"]
    issues = await table.unsettled(state["turn"])
    return {
        "ended": state["ended"],
        "turns": state["turn"],
        "accepted by": table.titles([name for name in deciders if accepted.get(name)]),
        "dissent": table.titles([name for name in deciders if not accepted.get(name)]),
        "unanswered issues": [str(issue) for issue in issues if issue.status == "open"],
        "written by": who,
    }


async def _written(given: Documenting, who: str, state: State) -> tuple[Parts, str]:
    """Return the document's parts; for an unusable reply, its usable parts and a complaint."""
    question = write_document_as(given.outline)
    try:
        answered = await ask(question, given, who, lane="user")
    except BadAnswer as bad:
        parts, unusable = usable_document(given.outline, bad.raw, {**state["document"], **state["report"]})
        told = f" Not usable: {', '.join(unusable)}." if unusable else ""
        return parts, f"The document is not whole. {bad}{told}"
    return answered.value.parts, ""


def approval(state: State) -> Literal["ask_approval", "close"]:
    """Return `ask_approval` if the discussion was begun with `approve`, else `close`."""
    return "ask_approval" if state["approve"] else "close"


async def ask_approval(state: State, runtime: DiscussionRuntime) -> Update:
    """Wait for a person's approval; remarks become a turn, which at least one more round discusses."""
    table = await Table.of(state["discussion_id"], runtime)
    said = await table.conversation.get(state["turn"] + 1)
    if said is None:  # else the remarks are stored already: this step was killed after them
        about = f"{table.team.document.name} of the discussion {table.about.id}: approve it?"
        shown = {name: value for name, value in state.items() if name in ENDING_FIELDS}
        shown |= action("finalise", about, Approval(approve=True), ("approve", "reject"))
        approved = ask_person(shown, Approval)
        if approved.approve:
            return {"approved": True}
        said = await table.conversation.add(
            Turn(
                number=state["turn"] + 1,
                speaker=PERSON_ANSWERER,
                title="Client",
                message=approved.remarks or "I do not approve the document as it is.",
                person=True,
                answered_by="a person",
            )
        )
    update = heard(said, state, runtime)
    bound = max(state["bound"], said.number + round_of(table.team))  # all discuss the remarks once at least
    return update | {"accepted": {}, "finalize": False, "ended": "", "speaker": "", "bound": bound}


def verdict(state: State) -> Literal["close", "select"]:
    """Close an approved discussion; else continue it."""
    return "close" if state["approved"] else "select"


async def close(state: State, runtime: DiscussionRuntime) -> Update:
    """Store in the ledger how the discussion ended, once."""
    table = await Table.of(state["discussion_id"], runtime)
    tokens = tokens_in(state["asked"])
    told = {name: value for name, value in state.items() if name in {*ENDING_FIELDS, "answered_by"}}
    told |= {"turns": state["turn"], "complaints": state.get("complaints", []), "tokens": tokens}
    ended = table.about.model_copy(update=told)
    await carry(table, state["turn"])  # once for each discussion, also where this step is replayed
    await table.discussions.close(ended)
    runtime.stream_writer({"step": "close", "discussion": table.about.id, "ended": state["ended"]})
    return {"tokens": tokens}
