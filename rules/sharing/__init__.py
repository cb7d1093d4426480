"""How rules answer, score and ask in Memory Sharing."""

from mneme.rules.sharing import memory_sharing

__all__ = ["memory_sharing"]
