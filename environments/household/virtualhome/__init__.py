"""The real VirtualHome, where a user has it, behind the interface of the household world."""
