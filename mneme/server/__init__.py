"""What the LangGraph server adds: the ledger's operations, and users with keys."""
