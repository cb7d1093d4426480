"""A person's part in a discussion: answers from the terminal, or as lines of JSON."""

import json
import re
import sys
from typing import Any

from rich.markup import escape
from rich.syntax import Syntax

from mneme.cli.show import console, emit, prints_json
from mneme.core.errors import BadInput

Values = dict[str, Any]


def answer_of(question: Values) -> Values | None:
    """Read a person's answer from the terminal or as a line of JSON; None at the end of the input."""
    if prints_json():
        emit({"waits": question})
        line = sys.stdin.readline()
        return _json(line) if line.strip() else None
    _print_question(question)
    return _approval() if "document" in question else _words(question)


def _json(line: str) -> Values:
    try:
        read: Values = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"This line is not JSON: {error}.", 'For example: {"message": "…", "accept": false}'
        ) from error
    return read


def _print_question(question: Values) -> None:
    if "document" in question:
        console.print(Syntax(json.dumps(question["document"], indent=1, ensure_ascii=False), "json"))
        return
    console.print(f"\n[bold]You speak as {escape(question['role'])}.[/] Your memory:")
    console.print(escape(question["memory"] or "nothing"), soft_wrap=True)
    for turn in question["turns"][-SHOWN:]:
        console.print(escape(turn), soft_wrap=True)
    if question["wrong"]:
        console.print(f"[red]{escape(question['wrong'])}[/]")


SHOWN = 3


def _words(question: Values) -> Values | None:
    message = _line("your message (empty: stop here)> ")
    if not message:
        return None
    said = {"message": message, "accept": _yes("Do you accept the solution?")}
    said["finalize"] = bool(question["may_finalize"]) and _yes("Shall the document be written now?")
    return said | {"answers": _answers(question.get("issues", {}))}


def _answers(issues: dict[str, str]) -> list[int]:
    """Ask which issues were answered, where there are any."""
    if not issues:
        return []
    for number, about in issues.items():
        console.print(f"  {number}. {escape(about)}", soft_wrap=True)
    named = re.findall(r"\d+", _line("Which of these issues does it answer (numbers; empty: none)> "))
    return [int(number) for number in named]


def _approval() -> Values | None:
    answer = _line("Approve? (yes, or what must still be discussed; empty: stop here)> ")
    if not answer:
        return None
    approved = answer.lower() in {"y", "yes"}
    return {"approve": approved, "remarks": "" if approved else answer}


def _yes(question: str) -> bool:
    return (_line(f"{question} [y/N]> ") or "n").lower().startswith("y")


def _line(prompt: str) -> str:
    console.print(prompt, end="", markup=False)
    return sys.stdin.readline().strip()
