"""What most commands of tests load, loaded once by the process that they are forked from."""

import asyncio
import gc

from mneme.cli import main
from mneme.cli.chat import chat
from mneme.cli.sharing import share
from mneme.client import workflows
from mneme.core.settings import settings
from mneme.graphs import memory_agent as graph
from mneme.graphs import remember
from mneme.models.embedding import minilm
from mneme.models.embedding.embedders import open_embedder
from mneme.rules import sharing
from mneme.rules.chat import chatbot, memory_agent

LOADED = (main, chat, share, workflows, graph, remember, chatbot, memory_agent, sharing)

minilm.INFERENCE_THREADS = 1  # a process that is forked from this one has none of its threads
asyncio.run(open_embedder("bundled"))
settings.cache_clear()
assert not settings.cache_info().currsize, "each command reads its own environment"

# A command's garbage collection would write to every page that it shares with this process, and so copy it.
gc.collect()
gc.freeze()
gc.enable()
