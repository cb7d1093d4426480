"""One compiled LangGraph graph per workflow."""
