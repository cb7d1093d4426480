"""What most commands of tests load, loaded once by the process that they are forked from."""

from mneme.cli import main
from mneme.cli.chat import chat, talk
from mneme.cli.sharing import share
from mneme.client import session
from mneme.core.settings import settings
from mneme.graphs import memory_agent as graph
from mneme.graphs import remember
from mneme.rules.chat import chatbot, memory_agent
from mneme.rules.english.words import stem
from mneme.rules.sharing import memory_sharing

LOADED = (main, chat, talk, share, session, graph, remember, chatbot, memory_agent, memory_sharing)
assert stem("houses") == stem("house")  # which reads the dictionary
assert not settings.cache_info().currsize, "each command reads its own environment"
