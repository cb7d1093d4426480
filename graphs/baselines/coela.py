"""CoELA (Zhang et al., ICLR 2024): each agent perceives, remembers, drafts a message, plans and executes."""

from mneme.graphs.baselines.mhp import decentralised
from mneme.nodes.household.coela import State, communicate, plan, remember

builder = decentralised(State, remember, communicate, plan)

graph = builder.compile(name="coela")
