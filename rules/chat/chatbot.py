"""How rules answer the chatbot's question: from what is remembered and was just said, without composing."""

import re

from mneme.prompts.chat import chatbot as questions
from mneme.prompts.chat.chatbot import Turn
from mneme.prompts.chat.evidence import words
from mneme.rules.chat.english import OF_SELF, of_the_user, statements, to_the_user
from mneme.rules.registry import rule
from mneme.rules.words import stem, words_in

MAX_SHOWN = 5
UNKNOWN = "I don't know: you have not told me that, as far as I can find."
CANNOT = "I can only answer from what you told me before; no language model is connected."
CLOSEST = "I cannot tell without a language model. The closest that I remember:"
ASKING = words_in(
    "know tell remember say remind ask anything something everything can could do does did be please list "
    "show mean think about user me my mine i you your we our us what who where when why how which much "
    "many any ever again the a an to of in on at for is are was were am have has had it this that name"
)


@rule(questions.reply)
def reply(given: Turn) -> str:
    """Acknowledge a statement; answer a question with the memories that share most of its words."""
    message = given.message[:8000].strip()
    if not message:
        return "You sent an empty message."
    if statements(message) and "?" not in message:
        return "Noted."
    known = dict.fromkeys(
        [*map(of_the_user, reversed(given.said)), *(each.content for each in given.memories)]
    )
    wanted = {stem(each) for each in words(message)} - ASKING
    about_self = not wanted and OF_SELF.search(message) is not None
    of_user = re.search(r"\bi\b", message, re.IGNORECASE) is not None
    scores = {each: 1 if about_self else _shared(wanted, each, of_user) for each in known}
    best = max(scores.values(), default=0)
    fitting = [to_the_user(each) for each, score in scores.items() if score == best > 0]
    if fitting:
        return fitting[0] if len(fitting) == 1 else "\n".join(f"- {each}" for each in fitting[:MAX_SHOWN])
    if OF_SELF.search(message) and known:
        return f"{CLOSEST}\n- {to_the_user(next(iter(known)))}"
    return UNKNOWN if "?" in message else CANNOT


def _shared(wanted: set[str], memory: str, of_user: bool) -> int:
    """Count the words of a question that a memory has in some form; none of one that is of somebody else."""
    said = [stem(each) for each in words(memory)]
    of_other = memory.lower().startswith("the user's") and said[2] not in wanted
    return 0 if of_user and of_other else len(wanted & {*said})
