"""Planning behind the household's rules: the next action of one member, and of a whole team.

All of it reads the typed inputs of `prompts/household/household.py` and nothing else; how far things are, the
world estimates (`environments/household/walking.py`).

- `whereabouts`: where a missing thing may be, by common sense and by what was seen.
- `errands`: what is to be fetched, delivered and looked for, and how many steps lie between.
- `routes`: routes of one or more members through all of that, while something is still to be found; for a
  whole team they are followed in samples of where things may be (the manager's).
- `rounds`: shortest rounds of fetching and delivering, once everything is found.
- `judgement`: what each option is worth to one member (the proposals of every method).
- `teamwork`: one option for each member of a team, together (the manager's allocation, eq. 4).
"""

from mneme.rules.household import coela, mita, proagent

__all__ = ["coela", "mita", "proagent"]
