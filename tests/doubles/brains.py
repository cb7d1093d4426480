"""Answers of an `OllamaDouble` by the rules of the prompts that it is asked."""

import re
from typing import Any, get_args, get_origin

from mneme.prompts.prompt import JSON_FORM, Line, Prompt
from mneme.rules import registry
from tests.doubles.ollama_streams import Answer, Brain, Reply, silent
from tests.doubles.stand_in import Json


def by_rules(*prompts: Prompt[Any, Any]) -> Brain:
    """Make a brain that recognises prompts by their wording and answers by their rules.

    So a whole workflow runs over the wire, with valid answers, and without a language model. What was
    given is read back from the wording; lists and numbers are recognised as the prompt rendered them.
    """
    known = {prompt.system_text(with_examples=shown): prompt for prompt in prompts for shown in (True, False)}

    def answer(body: Json) -> Answer:
        system, user = (_said(body, role) for role in ("system", "user"))
        prompt = known.get(system)
        if prompt is None:
            return silent(body)
        ruled = registry.answer(prompt, _given(prompt, user))
        return ruled if isinstance(ruled, str) else Reply(ruled.model_dump_json())

    return answer


def _said(body: Json, role: str) -> str:
    """Return what the last message of a role says."""
    said = [str(message["content"]) for message in body["messages"] if message["role"] == role]
    return said[-1] if said else ""


def _given(prompt: Prompt[Any, Any], user: str) -> Any:
    """Read what was given out of the wording that it was put into."""
    parts = re.split(r"\$\{?(\w+)\}?", prompt.user)
    groups = [f"(?P<{part}>.*?)" if at % 2 else re.escape(part) for at, part in enumerate(parts)]
    found = re.fullmatch("".join(groups), user.rpartition(f"\n\n{JSON_FORM}")[0] or user, re.DOTALL)
    if found is None:
        raise ValueError(f"The wording of {prompt.name} is not recognised in: {user}")
    fields = prompt.given.model_fields
    values = {name: _unrendered(text, fields[name].annotation) for name, text in found.groupdict().items()}
    return prompt.given.model_validate(values)


def _fields(kind: type[Line], shown: str) -> Any:
    """Read the fields of a line back from how it is shown."""
    whole = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.*)", re.escape(kind.line))
    found = re.fullmatch(whole, shown, re.DOTALL)
    return found.groupdict() if found else shown


def _unrendered(text: str, kind: Any) -> Any:
    """Undo how a prompt renders a list and an absent value."""
    if get_origin(kind) in {list, tuple}:
        read, (item, *_) = re.split(r"(?:\A|\n)\[\d+\] ", text)[1:], get_args(kind)
        is_line = isinstance(item, type) and issubclass(item, Line)
        return [_fields(item, each) for each in read] if is_line else read
    return "" if text == "(none)" else text
