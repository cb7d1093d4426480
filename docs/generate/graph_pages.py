"""The graphs with their inputs and contexts, and the prompts."""

import json
from pathlib import Path
from typing import Any

from drawing import as_svg
from tables import code, fields, table

from mneme.graphs import load
from mneme.prompts.every import questions

ROOT = Path(__file__).parents[2]
GRAPHS = """\
The graphs of `langgraph.json`, as Studio and the API offer them. The input is what a run begins with, the
context says whose memories it uses and who answers. `mneme graph NAME` prints a picture as Mermaid.

"""
PROMPTS = """\
Every question that Mneme asks a model. [Word a prompt yourself](../how-to/own-prompt.md) says how to change
the wording; the fields that are given and the type of the answer stay.

"""


def graphs() -> str:
    """Write every graph of `langgraph.json` with its picture, input, context and result."""
    listed = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    return GRAPHS + "".join(_graph(name, each["description"]) for name, each in listed.items())


def _graph(name: str, description: str) -> str:
    graph = load(name).graph
    parts = {
        "Input": graph.get_input_jsonschema(),
        "Context": graph.get_context_jsonschema(),
    }
    tables = "".join(
        f"**{title}**\n\n{fields(schema, of=f'{name}: {title}')}" for title, schema in parts.items()
    )
    result = ", ".join(map(code, graph.get_output_jsonschema().get("properties", {})))
    drawn = as_svg(graph.get_graph(), name)
    return (
        f'## {name}\n\n{description}\n\n<div class="diagram">{drawn}</div>\n\n{tables}'
        f"**Result**: {result or 'nothing'}\n\n"
    )


def prompts() -> str:
    """Write every prompt with what is given, what is answered, and its wording."""
    found = questions()
    rows = [
        (f"[{room}/{name}](#{room}{name})", ", ".join(map(code, prompt.given.model_fields)), _answer(prompt))
        for (room, name), prompt in found.items()
    ]
    listed = table(("prompt", "given", "answer"), rows)
    return PROMPTS + listed + "".join(_prompt(*key, prompt) for key, prompt in found.items())


def _answer(prompt: Any) -> str:
    return "text" if prompt.answer is str else ", ".join(map(code, prompt.answer.model_fields))


def _prompt(room: str, name: str, prompt: Any) -> str:
    question = f"{prompt.user}\n\n{prompt.ending}".strip()
    written = "".join(
        f"{title}:\n\n~~~~text\n{text}\n~~~~\n\n"
        for title, text in (("System", prompt.system), ("Question", question))
    )
    return f"## {room}/{name}\n\n{written}"
