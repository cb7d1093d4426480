"""Rules that answer the questions of `prompts/chat/`: they keep what was said and change little."""

from mneme.rules.chat import chatbot, memory_agent

__all__ = ["chatbot", "memory_agent"]
