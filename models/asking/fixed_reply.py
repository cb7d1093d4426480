"""A chat model that streams a text which is known: what rules say looks like any other model's reply."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel, generate_from_stream
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult


class FixedReply(BaseChatModel):
    """A chat model whose reply is a given text, word by word, so that it streams like any other."""

    text: str

    @property
    def _llm_type(self) -> str:
        return "fixed_reply"

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for word in re.findall(r"\s*\S+\s*$|\s*\S+|\s+", self.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream():
            yield chunk

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return generate_from_stream(self._stream())
