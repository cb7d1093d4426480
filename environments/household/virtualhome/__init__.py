"""The real VirtualHome, which a user has started, behind the interface of the household world."""
