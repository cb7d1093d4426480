"""How rules answer the questions of `prompts/chat/`."""

from mneme.rules.chat import chatbot, memory_agent

__all__ = ["chatbot", "memory_agent"]
