"""How rules discuss a design."""

from mneme.rules.discussion import document, intrinsic_memory, template_making

__all__ = ["document", "intrinsic_memory", "template_making"]
