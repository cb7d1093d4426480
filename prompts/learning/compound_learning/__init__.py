"""The questions of compound learning (§3): draft, challenge, revise, resolve, compile.

The text of a task, a card or a tool's result is data for the agents; the wording of each question says so. A
task stands in a world that says what a solution is worth (`task.py`): it gives the material, what is wanted,
how a solution is written, and, where it has patterns, what a pattern can say. Without a world there is
nothing but words, and what a model then says of itself is no evidence.
"""
