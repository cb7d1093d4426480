"""Memory for LLM agents and teams of agents, on your own machine."""
