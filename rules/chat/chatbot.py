"""Rules that answer the chatbot's question from the memories and the message, without composing text."""

import re

from mneme.prompts.chat import chatbot as questions
from mneme.prompts.chat.chatbot import Turn
from mneme.rules.chat.comparison import stems
from mneme.rules.chat.english import PERSON, statements
from mneme.rules.registry import rule

MAX_RECITED = 5
DONT_KNOW = "I don't know: you have not told me that, as far as I can find."
CANNOT = "I can only answer from what you told me before; no language model is connected."
CLOSEST = "I cannot tell without a language model. The closest that I remember:"


@rule(questions.reply)
def reply(given: Turn) -> str:
    """Acknowledge a statement; answer a question with the memories that share most of its words."""
    message = given.message[:8000]
    if "?" not in message and statements(message):
        return "Noted."
    held = (each.content for each in given.memories)
    known = [*dict.fromkeys([*reversed(given.said), *held, *given.holding])]
    wanted, of_self = stems(message), PERSON.search(message) is not None
    shared = [len(wanted & stems(each)) or int(of_self and not wanted) for each in known]
    if re.search(r"(?i)\bi\b", message):  # a memory of somebody else does not count
        others = [re.match(r"(?i)(?:my|the user['’]s) (\w+)", each) for each in known]
        is_other = [of is not None and bool(stems(of[1]) - wanted) for of in others]
        shared = [0 if other else many for other, many in zip(is_other, shared, strict=True)]
    told = [each for each, many in zip(known, shared, strict=True) if many == max(shared) > 0]
    if told or (of_self and known):
        return "\n- ".join(["You told me:" if told else CLOSEST, *(told or known[:1])[:MAX_RECITED]])
    return DONT_KNOW if "?" in message else CANNOT
