"""Ask one golden case of a responder as the product would, and say what came of it."""

import time
from typing import Literal, cast

from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from mneme.core.errors import BadAnswer, BadInput, NoTools, PromptTooLong
from mneme.evals.prompts.cases import Golden
from mneme.evals.prompts.properties import as_json
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import counting
from mneme.nodes.chat.memory_tools import calls_of, turn_of
from mneme.prompts.chat.paper_versions import ToolChoices, ToolGiven, choose_tools

MAX_ANSWER_CHARS = 2000
"""Characters of an answer that are kept to be looked at."""

Came = Literal["first", "repaired", "refused", "no rule"]


class Outcome(BaseModel):
    """What came of one case: whether an answer could be used, and whether it was right."""

    prompt: str
    kind: str
    came: Came
    wrong: list[str] = []
    """The properties that do not hold; of a refused answer, why it was refused."""
    answer: str = ""
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        return self.came in {"first", "repaired"} and not self.wrong


async def outcome_of(golden: Golden, responder: str) -> Outcome:
    """Ask a case. Raises `ModelUnavailable` where nobody answers; a reply that is no good is an outcome."""
    about = {"prompt": "/".join(golden.key), "kind": golden.case.kind}
    began = time.perf_counter()
    with counting() as asked:
        came, answer, wrong = await _answered(golden, responder)
    return Outcome(
        **about,
        came="repaired" if came == "first" and asked["repaired"] else came,
        wrong=wrong,
        answer=answer[:MAX_ANSWER_CHARS],
        prompt_tokens=asked["prompt_tokens"],
        reply_tokens=asked["reply_tokens"],
        seconds=time.perf_counter() - began,
    )


async def _answered(golden: Golden, responder: str) -> tuple[Came, str, list[str]]:
    """Return whether a usable answer came, its text, and what is wrong with it."""
    try:
        answer = await _asked(golden, responder)
    except BadAnswer as bad:
        return "refused", bad.raw, [str(bad)]
    except (NoTools, PromptTooLong) as unable:
        return "refused", "", [str(unable)]
    except BadInput as missing:
        if responder != "rules":
            raise
        return "no rule", "", [str(missing)]
    found = as_json(answer)
    wrong = [str(each) for each in golden.case.expect if not each.holds(found)]
    return "first", answer if isinstance(answer, str) else answer.model_dump_json(by_alias=True), wrong


async def _asked(golden: Golden, responder: str) -> BaseModel | str:
    question = golden.question
    if question.name == choose_tools.name:  # it is answered by calling tools
        told = [HumanMessage(question.user_text(golden.given))]
        turn = await turn_of(question, cast(ToolGiven, golden.given), told, responder)
        return ToolChoices(calls=calls_of(turn))
    answered = await ask(golden.question, golden.given, responder, lane="background")
    return cast("BaseModel | str", answered.value)
