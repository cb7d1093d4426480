"""How rules discuss a design."""

from mneme.rules.discussion import design_judge, document, intrinsic_memory, template_making

__all__ = ["design_judge", "document", "intrinsic_memory", "template_making"]
