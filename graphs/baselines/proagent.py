"""ProAgent (Zhang et al., AAAI 2024): each agent watches its teammates, infers, plans, executes."""

from mneme.graphs.baselines.mhp import decentralised
from mneme.nodes.household.proagent import State, plan, watch

builder = decentralised(State, watch, plan)

graph = builder.compile(name="proagent")
