"""How rules answer the questions of `prompts/chat/chatbot.py`."""

from mneme.prompts.chat import chatbot as questions
from mneme.prompts.chat.chatbot import Turn
from mneme.rules.english.answering import answer
from mneme.rules.registry import rule


@rule(questions.reply)
def reply(given: Turn) -> str:
    """Answer a question from the memories, or say that they do not answer it."""
    return answer(given.message, [each.content for each in given.memories])
