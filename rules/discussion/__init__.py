"""Rules that hold a discussion: they say again what task, persons and duties say, and judge nothing."""

from mneme.rules.discussion import document, intrinsic_memory, memory_update, template_making

__all__ = ["document", "intrinsic_memory", "memory_update", "template_making"]
