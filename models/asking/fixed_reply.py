"""A chat model that streams a text which is known: what rules say looks like any other model's reply."""

import re
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


class FixedReply(BaseChatModel):
    """A chat model whose reply is a given text, word by word, so that it streams like any other."""

    text: str

    @property
    def _llm_type(self) -> str:
        return "fixed_reply"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.text))])

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for word in re.findall(r"\s*\S+\s*$|\s*\S+|\s+", self.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
