"""The agents that share memories, the rubrics that score them, and the forms of what they write."""

from mneme.library.agents.agent import AGENTS, DOMAINS, Agent, agents_of, load_agent
from mneme.library.agents.rubric import RUBRICS, Criterion, Rubric, load_rubric, read_rubric

__all__ = [
    "AGENTS",
    "DOMAINS",
    "RUBRICS",
    "Agent",
    "Criterion",
    "Rubric",
    "agents_of",
    "load_agent",
    "load_rubric",
    "read_rubric",
]
