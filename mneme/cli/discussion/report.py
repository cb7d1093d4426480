"""Write a discussion as a report in Markdown and HTML, and as JSON files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from mneme.core.errors import StorageFailure
from mneme.library.teams.document import MINUTES, schema
from mneme.library.teams.team import Document, Team, read_team
from mneme.stores.discussions.agent_memory import MemoryVersion
from mneme.stores.discussions.discussions import Discussion, Turn

STYLE = (
    "body{max-width:52rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;color:#222}"
    "pre{background:#f5f5f5;padding:1rem;overflow:auto;font-size:13px}h1,h2,h3{line-height:1.2}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.3rem .6rem;text-align:left}"
    "@media (prefers-color-scheme:dark){body{background:#161616;color:#ddd}pre{background:#222}}"
)


def write_report(
    folder: Path, about: Discussion, turns: Sequence[Turn], memories: Sequence[MemoryVersion]
) -> list[Path]:
    """Write document, schema, transcript, memories and report; return the files. Raises StorageFailure."""
    document = read_team(about.team).document
    written = {document.name: json.dumps(about.document, indent=2, ensure_ascii=False) + "\n"}
    text = markdown(about, turns, memories)
    files = {
        **(written if about.document else {}),
        f"{Path(document.name).stem}.schema.json": json.dumps(schema(document), indent=2) + "\n",
        "transcript.jsonl": "".join(f"{turn.model_dump_json()}\n" for turn in turns),
        "memories.jsonl": "".join(f"{each.model_dump_json()}\n" for each in memories),
        "report.md": text,
        "report.html": html(text, f"{document.name}: {about.id}"),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise StorageFailure(
            f"Cannot write to {folder}: {error.strerror}.",
            "Choose another folder with --out FOLDER; the discussion is not lost.",
        ) from error
    return [folder / name for name in files]


def markdown(about: Discussion, turns: Sequence[Turn], memories: Sequence[MemoryVersion]) -> str:
    """Return the whole report in Markdown."""
    team = read_team(about.team)
    before = chain(_head(about, team), _document(about, team.document), _memories(memories, team))
    return "\n".join([*before, *_transcript(turns), "## Task", "", *_quoted(about.task)]) + "\n"


NOTHING_LOADED = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def html(text: str, title: str) -> str:
    """Return Markdown as a page of HTML that loads nothing; HTML in the text is escaped, images are links."""
    # else a model or an agent's memory could make the reader's browser contact a foreign server
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image_as_link)
    body = parser.render(text)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{NOTHING_LOADED}">'
        '<meta name="referrer" content="no-referrer">'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body>\n{body}</body></html>\n"
    )


def _image_as_link(parser: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    """Render an image as a link to it; the parser has refused addresses that run scripts."""
    source = str(tokens[at].attrs["src"])
    shown = parser.renderInlineAsText(tokens[at].children or [], options, env)
    return f'<a href="{escape(source)}">{escape(shown or source)}</a>'


ENDING_TEXTS = {
    "consensus": "All deciding roles accepted the solution.",
    "turn limit": "The limit of turns was reached before all accepted.",
    "": "The discussion has not ended.",
}


def ending(about: Discussion) -> str:
    """Return how a discussion ended, whether it has a document, what was taken back, and why it is stale."""
    is_held = about.ended == "turn limit" and bool(about.document)
    held = "The document has what was agreed until then." if is_held else ""
    withdrawn = (f"Withdrawn since: {each}" for each in about.withdrawn)
    outdated = about.stale and f"Out of date: {about.stale.removesuffix('.')}."
    return " ".join(filter(None, (ENDING_TEXTS[about.ended], about.lacks or held, *withdrawn, outdated)))


def _head(about: Discussion, team: Team) -> Iterator[str]:
    who = ", ".join(sorted(set(about.answered_by.values()))) or "nobody yet"
    yield from (f"# {team.document.name}", "")
    yield f"{ending(about)} {about.turns} turns, {about.tokens} tokens, memory: {about.memory}."
    yield from ("", f"Team {team.name}; answered by {who}; discussion {about.id}.", "")
    if about.complaints:
        yield from ("Answers that could be used only in part:", "")
        yield from (*(f"- {_line(each)}" for each in about.complaints), "")


def _document(about: Discussion, document: Document) -> Iterator[str]:
    for name, text in about.report.items():
        yield from (f"## {name.replace('_', ' ').capitalize()}", "", _line(text), "")
    if not about.document:
        return
    yield from ("## Document", "")
    for name, value in about.document.items():
        if name == MINUTES and isinstance(value, Mapping):
            yield from ("### Minutes", "")
            said = {part: "; ".join(each) if isinstance(each, list) else each for part, each in value.items()}
            yield from (f"- **{part}**: {_line(each or 'none')}" for part, each in said.items())
        elif isinstance(value, Mapping):
            yield from (f"### {name}: {_line(value['name'])}", "")
            yield from (f"- **{part}**: {_line(value[part])}" for part in document.item_fields)
            # the turns in which it was said, unless the team's own document has a field of that name
            turns = value.get("turns", []) if "turns" not in document.item_fields else []
            yield from ([f"- turns {', '.join(map(str, turns))}"] if turns else [])
        else:
            yield f"**{name}**: {_line(str(value))}"
        yield ""


def _memories(memories: Sequence[MemoryVersion], team: Team) -> Iterator[str]:
    if not memories:
        return
    yield from ("## Each agent's memory at the end", "")
    titles = {role.name: role.title for role in team.roles}
    for each in memories:
        yield from (f"### {titles.get(each.agent, each.agent)} (after turn {each.turn})", "")
        yield from ("```json", json.dumps(each.memory, indent=1, ensure_ascii=False), "```", "")


def _transcript(turns: Sequence[Turn]) -> Iterator[str]:
    yield from ("## Transcript", "")
    for turn in turns:
        marks = ["a person"] * turn.person + ["accepts"] * turn.accept + ["finalises"] * turn.finalize
        marked = f" ({', '.join(marks)})" if marks else ""
        yield from (f"### {turn.number}. {turn.title}{marked}", "")
        yield from _quoted(turn.message)
        yield from (f"- raises: {_line(each.about)}" for each in turn.raises)
        yield from [""] * bool(turn.raises)


def _quoted(text: str) -> Iterator[str]:
    # two spaces: Markdown would join the lines of a quotation
    yield from (f"> {line}  " for line in text.splitlines())
    yield ""


def _line(text: Any) -> str:
    # a line break would end a list's item or a heading, and what follows could be Markdown of its own
    return " ".join(str(text).split())
