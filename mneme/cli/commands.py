"""Every command of `mneme`: its group, and the function or the operation that it runs.

A command with a help text here calls an operation and prints its result.
"""

from functools import partial
from importlib import import_module
from typing import Any

import typer

from mneme.cli.groups import Calls, Group, built, functions, group
from mneme.cli.options import Owner

EVALS = "mneme.evals"
RUN = "run"


class TaskFirst(Group):
    """Read a first word that is no command as the task: `discuss TASK.md` is `discuss run TASK.md`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in {"--help", "-h"}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


def add_commands(app: typer.Typer) -> None:
    """Add all commands, in the order in which they are listed."""
    functions(app, "mneme.cli.chat.chat", "chat")
    functions(app, "mneme.cli.chat.remember", "remember")
    add_memories(app)
    functions(app, "mneme.cli.chat.demo", "demo")
    threads = group("Conversations and other threads: list, prune, delete.")
    call = Calls(threads, "mneme.api.threads:Threads")
    call("list", "list", "List your threads, the most recently used one last.")
    functions(threads, "mneme.cli.threads", "delete", "prune")
    app.add_typer(threads, name="threads")
    importing = group(
        "Import what other programs know about you; the same command continues an interrupted run."
    )
    for source in ("chatgpt", "claude", "markdown", "mem0", "langmem"):
        functions(importing, "mneme.cli.importing", f"{source}=import_{source}")
    app.add_typer(importing, name="import")
    functions(app, "mneme.cli.learning.learn", "learn")
    add_cards(app)
    household = group("A manager and its members do household tasks (MiTa).")
    functions(household, "mneme.cli.household.play", "run")
    functions(household, "mneme.cli.household.replay", "replay", "list_")
    app.add_typer(household, name="household")
    pddl = group("A team with a memory solves planning problems (PDDL).")
    functions(pddl, "mneme.cli.pddl", "list_", "show", "memories", "run")
    app.add_typer(pddl, name="pddl")
    add_discussions(app)
    add_sharing(app)
    embedder = group("Install the embedder that memory search needs.")
    functions(embedder, "mneme.cli.embedder", "install")
    app.add_typer(embedder, name="embedder")
    evaluations = group("Run an evaluation and print its table next to the paper's.")
    for name, each in import_module(EVALS).EVALUATIONS.items():
        built(evaluations, name, each.does, partial(_evaluation, name, each.module), panel=each.paper)
    app.add_typer(evaluations, name="eval")
    users = group("Users of the server and their keys (needs MNEME_AUTH).")
    functions(users, "mneme.cli.users", "add", "remove", "list_")
    app.add_typer(users, name="users")
    prompts = group("Show the prompts that models are given, and use your own.")
    functions(prompts, "mneme.cli.prompts", "list_", "check")
    functions(prompts, "mneme.cli.prompts", "show", "export", prints_json=False)
    app.add_typer(prompts, name="prompts")
    functions(app, "mneme.cli.draw", "graph")
    functions(app, "mneme.cli.console", "mcp", prints_json=False)
    functions(app, "mneme.cli.console", "console")
    functions(app, "mneme.cli.doctor", "doctor")
    functions(app, "mneme.cli.keeping", "verify", "repair", "backup", "restore")


def _evaluation(name: str, module: str) -> Any:
    from mneme.cli.evaluate import command_of

    return command_of(name, f"{EVALS}.{module}")


def add_memories(app: typer.Typer) -> None:
    """Add `add`, `memories` and `inbox`."""
    record, written = "mneme.cli.show:print_record", "mneme.cli.chat.memories:print_written"
    listed, text = "mneme.cli.chat.memories:print_listed", "mneme.cli.show:print_text"
    versions = "mneme memories history {key}"
    operations = "mneme.api.memories:Memories"
    add = "Write a memory word for word, without the memory agent; show what it may contradict."
    Calls(app, operations)("add", "add", add, shows=written)
    memories = group("List, search and change memories.")
    call = Calls(memories, operations)
    call("list", "list", "List memories, oldest first.", {"include_retired": "--retired"}, shows=listed)
    call("search", "recall", "Search by meaning and by words.", {"mode": "--search"}, searching=True)
    update = "Replace the text of a memory; the history keeps the old one."
    call("update", "update", update, shows=written)
    call("show", "show", "Show a memory with all its fields.", shows=record)
    history = "Show every version of a memory: what changed, when, why, and who decided."
    call("history", "history", history)
    diff = "Show what changed between two versions."
    call("diff", "diff", diff, shows=text, called="diff", versions=versions)
    back = "Go back to an earlier version; the history keeps both."
    call("rollback", "rollback", back, versions=versions)
    call("undo", "undo", "Take back the last change.")
    more = ("reread", "review", "forget", "export", "import_", "reembed")
    functions(memories, "mneme.cli.chat.memories", *more)
    app.add_typer(memories, name="memories")
    inbox = group("Messages that wait to be remembered, and those that failed.")
    call = Calls(inbox, "mneme.api.inbox:Messages")
    waiting = "List the messages that wait, and those that were set aside after they failed too often."
    call("list", "list", waiting)
    failed = "Show a message, why it could not be remembered, and the model's last reply."
    call("show", "get", failed, shows=record)
    retry = "Put a message that was set aside back into the inbox; the memory agent then tries it again."
    call("retry", "retry", retry)
    functions(inbox, "mneme.cli.chat.inbox", "drop")
    app.add_typer(inbox, name="inbox")


def add_cards(app: typer.Typer) -> None:
    """Add `cards` and `disputes`."""
    here = "mneme.cli.learning.cards"
    card, expiry = f"{here}:print_card", {"expires_at": "--expires"}
    cards = group("List, search and change a team's knowledge cards.")
    call = Calls(cards, "mneme.api.cards:Cards")
    call("list", "list", "List the cards, in the order in which they were first learned.")
    search = "Show the cards that a task would get, and the parts of their scores."
    call("search", "search", search, searching=True)
    call("show", "get", "Show a card in its YAML form.", shows=card)
    call("history", "history", "Show every version of a card: what changed, why, and who decided.")
    back, versions = "Go back to an earlier version; the history keeps both.", "mneme cards history {card_id}"
    call("rollback", "rollback", back, shows=card, versions=versions)
    deprecate = "Remove a card from retrieval; the devil's advocate still sees it."
    call("deprecate", "deprecate", deprecate, shows=card)
    call("restore", "restore", "Bring a deprecated or archived card back.", shows=card)
    metrics = "Compute the metrics of the knowledge base; exit with 1 if an alert is critical."
    call("metrics", "metrics", metrics, shows=f"{here}:print_metrics", fails=f"{here}:is_critical")
    trend = "Show reuse, satisfaction and quality over time, counted from the ledger's own history."
    call("trend", "trend", trend, shows=f"{here}:print_trend")
    rate = "Say whether a card served: it counts as satisfaction, and as a success or failure."
    call("rate", "rate", rate, {"good": "--good/--bad"}, shows=card)
    care = "Say who looks after a card, until when it holds, and for which version."
    call("care", "care_for", care, expiry, shows=card)
    supersede = "Replace a card by a better one; the old one is deprecated, and says by which."
    call("supersede", "supersede", supersede, shows=card)
    clear = "Let a card be retrieved that was put aside because it reads like an instruction."
    call("clear-flag", "clear_flag", clear, shows=card)
    upkeep = (
        "Archive inactive and expired cards and renew the clusters now; else it goes on beside the tasks."
    )
    call("upkeep", "upkeep", upkeep, shows="mneme.cli.show:print_fields", told=f"{here}:counted")
    functions(cards, here, "propose=add", hidden=True)
    functions(cards, here, "add", "promote", "export", "import_")
    functions(cards, "mneme.cli.learning.reviewing", "review")
    functions(cards, "mneme.cli.learning.intake", "intake")
    functions(cards, "mneme.cli.learning.consolidation", "consolidate=consolidate_cards")
    app.add_typer(cards, name="cards")
    disputes = group("Findings that contradict verified cards: list, test and decide them.")
    listed = "List the disputes, oldest first."
    Calls(disputes, "mneme.api.cards:Cards")("list", "list_disputes", listed, {"card_id": "--card"})
    functions(disputes, "mneme.cli.learning.disputes", "show", "open_", "resolve")
    app.add_typer(disputes, name="disputes")


def add_discussions(app: typer.Typer) -> None:
    """Add `discuss`."""
    discuss = group(
        "A team discusses a task; each agent has its own memory: mneme discuss TASK.md --team NAME.",
        TaskFirst,
    )
    functions(discuss, "mneme.cli.discussion.discuss", RUN)
    listed = "List the discussions, in the order in which they began."
    Calls(discuss, "mneme.api.discussions:TeamDiscussions", Owner)("list", "list", listed)
    functions(discuss, "mneme.cli.discussion.show", "show", "report", "memory", "teams")
    functions(discuss, "mneme.cli.discussion.carried", "carried", "forget_carried")
    functions(discuss, "mneme.cli.discussion.new_team", "new_team")
    app.add_typer(discuss, name="discuss")


def add_sharing(app: typer.Typer) -> None:
    """Add `share`."""
    here, operations, of_pool = "mneme.cli.sharing", "mneme.api.pools:Pools", {"pool": "--pool"}
    share = group("Agents that share one pool of prompt-answer pairs (Memory Sharing).")
    functions(share, f"{here}.share", "ask", "grow")
    functions(share, "mneme.cli.learning.consolidation", "consolidate=consolidate_pool")
    rate, up = "Rate a pair; your thumb enters its score.", {"up": "--up/--down", **of_pool}
    Calls(share, operations)("rate", "rate", rate, up, shows=f"{here}.pools:print_rated")
    agents = group("Make and list agents of your own.")
    functions(agents, f"{here}.agent", "new", "list_")
    functions(agents, f"{here}.agent", "fields", prints_json=False)
    share.add_typer(agents, name="agent")
    pool = group("List, search, show, import, export and remove shared pairs.")
    search = "Show the pairs that would be used to answer a question, the best first."
    Calls(pool, operations)("search", "search", search, of_pool, searching=True)
    functions(pool, f"{here}.pools", "list_", "show", "export", "import_", "remove")
    share.add_typer(pool, name="pool")
    retriever = group("Show, train and roll back a pool's retriever.")
    functions(retriever, f"{here}.retriever", "status", "train")
    back, printed = "Go back to an earlier version.", f"{here}.retriever:print_rolled_back"
    told = f"{here}.retriever:rolled_back"
    Calls(retriever, operations)("rollback", "rollback", back, of_pool, shows=printed, told=told)
    share.add_typer(retriever, name="retriever")
    rubric = group("Show, draft, review and freeze the rubrics that score pairs.")
    call = Calls(rubric, operations)
    call("list", "rubrics", "List each domain's current rubric.")
    call("show", "rubric", "Show a domain's rubric.", shows=f"{here}.rubric:print_frozen")
    functions(rubric, f"{here}.rubric", "design", "review", "freeze")
    share.add_typer(rubric, name="rubric")
    app.add_typer(share, name="share")
