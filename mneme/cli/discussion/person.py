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
TURNS_SHOWN = 3


def answer_of(question: Values) -> Values | None:
    """Read a person's answer from the terminal or as a line of JSON; None at the end of the input."""
    if not prints_json():
        _print_question(question)
        return _approval() if "document" in question else _words(question)
    emit({"waits": question})
    line = sys.stdin.readline()
    try:
        answer: Values | None = json.loads(line) if line.strip() else None
    except json.JSONDecodeError as error:
        example = 'For example: {"message": "…", "accept": false}'
        raise BadInput(f"This line is not JSON: {error}.", example) from error
    return answer


def _print_question(question: Values) -> None:
    if "document" in question:
        console.print(Syntax(json.dumps(question["document"], indent=1, ensure_ascii=False), "json"))
        return
    console.print(f"\n[bold]You speak as {escape(question['role'])}.[/] Your memory:")
    console.print(escape(question["memory"] or "nothing"), soft_wrap=True)
    for turn in question["turns"][-TURNS_SHOWN:]:
        console.print(escape(turn), soft_wrap=True)
    if question["wrong"]:
        console.print(f"[red]{escape(question['wrong'])}[/]")


def _words(question: Values) -> Values | None:
    message = _line("your message (empty: stop here)> ")
    if not message:
        return None
    said = {"message": message, "accept": _yes("Do you accept the solution?")}
    said["finalize"] = bool(question["may_finalize"]) and _yes("Shall the document be written now?")
    answers = list[int]()
    if issues := question.get("issues"):
        for number, about in issues.items():
            console.print(f"  {number}. {escape(about)}", soft_wrap=True)
        named = _line("Which of these issues does it answer (numbers; empty: none)> ")
        answers = [int(number) for number in re.findall(r"\d+", named)]
    return said | {"answers": answers}


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
