"""Attempts at one answer: repaired, counted, and traced as one run.

Each failed attempt is answered by another one that has a better chance: what was wrong is shown to the
model where seeing it can help, there is more room where the reply was cut, and seed and temperature are
others each time.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, merge_configs
from langchain_core.tracers.base import BaseTracer

from mneme.errors import BadAnswer, PromptTooLong
from models.gate import Lane
from models.replies import CutShort, Endless, Leaked, Unusable
from models.responders import Wish, Words, model_of

T = TypeVar("T")

REPAIRS = 2
SEED = 7
MORE = 4
WARMER = 0.3
SHOWN_BACK = 2000
INTERNAL = RunnableConfig(tags=["nostream", "langsmith:nostream"])  # LangGraph 1.2 heeds the first alone


@dataclass
class Tally:
    """One question to one responder, and what the attempts at its answer cost so far."""

    name: str
    responder: str
    attempts: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    message_id: str = ""

    @property
    def is_prepared(self) -> bool:
        """Tell whether the answer exists already, as a rule or in a script."""
        return self.responder == "rules" or self.responder.startswith("scripted:")

    def add(self, message: AIMessage) -> None:
        """Count what a reply cost."""
        used = message.usage_metadata
        self.prompt_tokens += used["input_tokens"] if used else 0
        self.reply_tokens += used["output_tokens"] if used else 0
        self.message_id = message.id or ""


@dataclass(frozen=True)
class Asking(Generic[T]):
    """One question on its way to a model: the words, what is wished, and what makes a reply acceptable."""

    words: Words
    wish: Wish
    accept: Callable[[AIMessage], T]
    lane: Lane
    shown: bool
    again: str


async def repaired(asking: Asking[T], tally: Tally, run: RunnableConfig) -> T:
    """Return the first acceptable reply; after each other one, ask again in a way that may help."""
    failure = Unusable("It was never asked.")
    model, words, wish = model_of(tally.responder), asking.words, asking.wish
    for attempt in range(1, REPAIRS + 2):
        tally.attempts = attempt
        try:
            message = await model.say(words, wish, asking.lane, child(run, tally, asking.shown))
            tally.add(message)
            return asking.accept(message)
        except Unusable as unusable:
            failure = unusable
        except PromptTooLong:
            if words is asking.words:
                raise
            words = asking.words  # there is no room to show what was wrong
            continue
        words, wish = _mended(asking, failure), _varied(asking.wish, wish, failure, attempt)
    raise BadAnswer(
        f"{tally.responder} gave no usable answer to {tally.name} in {tally.attempts} attempts: {failure}",
        failure.raw,
        "Choose a stronger model for this role, or `rules`.",
    ) from failure


def _mended(asking: Asking[T], failure: Unusable) -> Words:
    """Show the model what was wrong, where seeing it can help."""
    if isinstance(failure, CutShort | Endless | Leaked) or not failure.raw.strip():
        return asking.words
    complaint = HumanMessage(f"That reply cannot be used. {failure} {asking.again}")
    shown = AIMessage(failure.raw[:SHOWN_BACK])
    return replace(asking.words, task=[*asking.words.task, shown, complaint])


def _varied(first: Wish, last: Wish, failure: Unusable, attempt: int) -> Wish:
    """Draw the next reply in another way, with more room where the last one was cut."""
    more = MORE if isinstance(failure, CutShort) else 1
    return replace(
        last,
        num_predict=last.num_predict * more,
        temperature=first.temperature + WARMER * attempt,
        seed=first.seed + attempt,
    )


def child(run: RunnableConfig, tally: Tally, shown: bool) -> RunnableConfig:
    """Return the config of one attempt; tokens that are not for the chat stay out of it."""
    mark = RunnableConfig(run_name=tally.responder, metadata={"attempt": tally.attempts})
    return merge_configs(run, mark) if shown else merge_configs(run, mark, INTERNAL)


def complete(message: AIMessage) -> str:
    """Return the text of a reply that its model ended by itself; look before parsing anything."""
    raw = str(message.text)
    reason = message.response_metadata.get("done_reason") or message.response_metadata.get("finish_reason")
    if reason in {"length", "max_tokens"}:
        raise CutShort("The reply was cut off at its limit of tokens.", raw)
    return raw


async def traced(
    tally: Tally, given: object, work: Callable[[RunnableConfig], Awaitable[T]], config: RunnableConfig | None
) -> T:
    """Do the work as one run named after its prompt, tagged with who answers, with the attempts counted."""

    async def run(_: object, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig) -> T:
        try:
            return await work(config)
        finally:
            _note(run_manager, tally.attempts)

    who = tally.responder
    marks = RunnableConfig(run_name=tally.name, tags=[who], metadata={"responder": who})
    return await RunnableLambda(run).ainvoke(given, merge_configs(ensure_config(config), marks))


def _note(run: AsyncCallbackManagerForChainRun, attempts: int) -> None:
    """Write the attempt count into the run, which LangSmith receives when the run ends."""
    for handler in run.handlers:
        if isinstance(handler, BaseTracer) and (traced := handler.run_map.get(str(run.run_id))):
            traced.add_metadata({"attempts": attempts})
