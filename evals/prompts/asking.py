"""Ask one golden case of a responder as the product would, and say what came of it."""

import time
from typing import Literal, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from mneme.core.errors import BadAnswer, NoTools, PromptTooLong
from mneme.evals.measuring import TokenCounter
from mneme.evals.prompts.cases import Golden
from mneme.evals.prompts.properties import as_json
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import counting
from mneme.nodes.chat.memory_tools import calls_of, turn_of
from mneme.prompts.chat.paper_versions import ToolChoices, ToolGiven, choose_tools
from mneme.rules.registry import has_rule

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
    if responder == "rules" and not has_rule(golden.question):
        return Outcome(**about, came="no rule")
    spent, began = TokenCounter(), time.perf_counter()
    came, answer, wrong = await _answered(golden, responder, RunnableConfig(callbacks=[spent]))
    return Outcome(
        **about,
        came=came,
        wrong=wrong,
        answer=answer[:MAX_ANSWER_CHARS],
        prompt_tokens=spent.read,
        reply_tokens=spent.written,
        seconds=time.perf_counter() - began,
    )


async def _answered(golden: Golden, responder: str, config: RunnableConfig) -> tuple[Came, str, list[str]]:
    """Return how a usable answer came, if one did, its text, and what is wrong with it."""
    with counting() as asked:
        try:
            answer = await _asked(golden, responder, config)
        except BadAnswer as bad:
            return "refused", bad.raw, [str(bad)]
        except (NoTools, PromptTooLong) as unable:
            return "refused", "", [str(unable)]
    found = as_json(answer)
    wrong = [str(each) for each in golden.case.expect if not each.holds(found)]
    text = answer if isinstance(answer, str) else answer.model_dump_json(by_alias=True)
    return "repaired" if asked["repaired"] else "first", text, wrong


async def _asked(golden: Golden, responder: str, config: RunnableConfig) -> BaseModel | str:
    question = golden.question
    if question.name == choose_tools.name:  # it is answered by calling tools
        told = [HumanMessage(question.user_text(golden.given))]
        turn = await turn_of(question, cast(ToolGiven, golden.given), told, responder, config=config)
        return ToolChoices(calls=calls_of(turn))
    answered = await ask(golden.question, golden.given, responder, lane="background", config=config)
    return cast("BaseModel | str", answered.value)
