"""Additions to the LangGraph server: the ledger's operations, and users with keys."""
