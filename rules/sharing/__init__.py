"""How rules answer, score and ask in Memory Sharing."""

from mneme.rules.sharing import contradiction, memory_sharing

__all__ = ["contradiction", "memory_sharing"]
