"""Ask a model of any provider that LangChain knows, other than Ollama; its own client waits and repeats."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from importlib import import_module
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, SystemMessage, message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig

from mneme.core.errors import MnemeError, ModelUnavailable, install_hint
from mneme.core.settings import settings
from mneme.models.asking.counting import pictures_in
from mneme.models.asking.replies import Unusable
from mneme.models.asking.responders import CallOptions, ModelRequest, in_ollama, unknown
from mneme.models.asking.streaming import countable, watched


async def say(
    provider: str, name: str, request: ModelRequest, options: CallOptions, config: RunnableConfig
) -> AIMessage:
    """Return one reply; the schema is part of the system text, which every provider reads.

    Servers that speak OpenAI's protocol also get it as `response_format`. Raises `Unusable` for a reply that
    is empty or does not end, `ModelUnavailable` if no server answers.
    """
    chat = await asyncio.to_thread(_open, provider, name, options)
    asks = "\n\nReply with one JSON object and nothing else. It follows this JSON schema:\n"
    system = f"{request.system}{asks}{options.schema}" if options.schema else request.system
    messages = [SystemMessage(system), *request.history, *request.task]
    runnable: Runnable[Any, Any] = chat
    if options.tools:
        runnable = chat.bind_tools(list(options.tools))
    elif options.schema and provider == "openai":
        told = {"logprobs": True, "top_logprobs": options.top_logprobs} if options.top_logprobs else {}
        # In strict mode, OpenAI refuses a schema with fields that may be left out.
        schema = {"name": "answer", "schema": options.schema, "strict": False}
        runnable = chat.bind(response_format={"type": "json_schema", "json_schema": schema}, **told)
    try:
        return await _whole(runnable.astream(messages, config), options)
    except Unusable:
        raise
    except Exception as error:  # each provider has its own kinds
        raise _failed(provider, name, error, shown=pictures_in(request.task) > 0) from error


async def check(provider: str, name: str) -> None:
    """Open a model and ask it nothing. Raises BadInput, MnemeError, ModelUnavailable as `say` does."""
    await asyncio.to_thread(_open, provider, name, CallOptions(num_predict=1, temperature=0.0, seed=0))


def _open(provider: str, name: str, options: CallOptions) -> BaseChatModel:
    # OpenAI's client leaves out the tokens of a stream, at any address but OpenAI's, unless it is told.
    own = {"stream_usage": True, "seed": options.seed} if provider == "openai" else {}
    drawn = {"temperature": options.temperature, "max_tokens": options.num_predict, **own}
    try:
        models = import_module("langchain.chat_models")
        chat = models.init_chat_model(name, model_provider=provider, **drawn)
    except ImportError as error:  # LangChain names a provider's package only in its message
        named = re.search(r"pip install (?:-U )?([\w-]+)", str(error))
        if named is not None and named[1] != "langchain":
            raise MnemeError(str(error).splitlines()[0], f"Install it: pip install {named[1]}") from error
        who = f"{provider}:{name}"
        hint = f"{install_hint('providers')}. For a model of Ollama write {in_ollama(who)}."
        raise MnemeError(f"{who} needs {error.name}, which is not installed.", hint) from error
    except Exception as error:  # each provider has its own kinds
        if "Unsupported provider" in str(error):
            raise unknown(f"{provider}:{name}") from error
        raise _failed(provider, name, error) from error
    return cast(BaseChatModel, chat)


def _failed(provider: str, name: str, error: Exception, *, shown: bool = False) -> ModelUnavailable:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    sees = "whether it sees pictures, " if shown else ""
    hint = f"Check the model's name, {sees}its provider's key in the environment, and the network."
    return ModelUnavailable(f"{provider}:{name} does not answer: {reason}", hint)


async def _whole(stream: AsyncIterator[Any], options: CallOptions) -> AIMessage:
    """Return a streamed reply as a whole; raise `Endless` where it goes in circles or takes too long."""
    now, said = settings(), None
    patience = (now.idle_seconds, now.reply_seconds, now.first_token_seconds)
    async with aclosing(watched(stream, countable(options.schema), *patience)) as chunks:
        async for chunk in chunks:
            said = chunk if said is None else said + chunk
    if said is None:
        raise Unusable("The reply is empty.")
    return cast(AIMessage, message_chunk_to_message(said))
