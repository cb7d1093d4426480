"""Arms of the household evaluation: those of the paper's tables and figure, and one played episode.

Every arm plays the same episodes. A weaker role under `rules` (figure 3b) is one whose decisions lapse with
probability `LAPSES`; with language models it is the model named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml

from mneme.environments.household.episode import Episode
from mneme.nodes.household.context import HouseholdContext, Setting

CATEGORIES = ("Wash Dishes", "Put Groceries", "Prepare a Meal", "Set up Table", "Prepare Tea")
"""Categories of episodes, in the order of table 1."""

_PRINTED = yaml.safe_load(Path(__file__).with_name("paper.yaml").read_text(encoding="utf-8"))
TABLE_1: dict[tuple[str, int], tuple[list[float], float]] = {
    (method, agents): (steps, average) for method, agents, steps, average in _PRINTED["table_1"]
}
"""Steps by category, and their average, as printed, by method and number of agents."""
TABLE_2: dict[str, dict[str, float]] = _PRINTED["table_2"]
"""Steps with three agents, by setting of observation."""
FIGURE_3B: dict[str, float] = _PRINTED["figure_3b"]
"""Steps lost against MiTa by the role that is weaker."""
LAPSES = 0.3
"""Share of a weaker role's decisions that are lapses in figure 3b."""

Method = Literal["MHP", "LLM", "CoELA", "ProAgent", "MiTa"]
METHODS: tuple[Method, ...] = ("MHP", "LLM", "CoELA", "ProAgent", "MiTa")
METHOD_NAMES = {"MHP": "mhp", "LLM": "alone", "CoELA": "coela", "ProAgent": "proagent", "MiTa": "mita"}
"""The methods' names on the command line."""
COUNTERS = (
    "conflicts", "redundant", "lost_steps", "forestalled", "messages",
    "calls", "prompt_tokens", "reply_tokens", "repaired", "fallbacks", "unallocated",
)  # fmt: skip
ACTIONS_REPORTED = 10
"""Latest steps and actions that a member reports and is shown (the paper gives no figure)."""
NARROW = 3
"""The narrower window at which the ablation of the summary is played once more."""


@dataclass(frozen=True)
class Arm:
    """A method with a number of agents, its responders, and its ablations."""

    method: Method
    agents: int
    member: str = "rules"
    manager: str = "rules"
    allocation: bool = True
    summary: bool = True
    member_lapses: float = 0.0
    manager_lapses: float = 0.0
    window: int = ACTIONS_REPORTED
    setting: Setting = "symbolic"

    @property
    def name(self) -> str:
        """Return the arm's name in the paper's tables."""
        if self.method != "MiTa":
            return self.method
        missing = {"allocation": self.allocation, "summary": self.summary}
        return next((f"w/o {part}" for part, kept in missing.items() if not kept), "MiTa")

    @property
    def key(self) -> str:
        """Return the key that distinguishes this arm's rows."""
        who = self.member if self.member == self.manager else f"{self.member}+{self.manager}"
        shares = f"{self.member_lapses}/{self.manager_lapses}"
        lapses = f", lapses {shares}" if self.member_lapses or self.manager_lapses else ""
        window = f", window {self.window}" if self.window != ACTIONS_REPORTED else ""
        eyes = ", with eyes" if self.setting == "visual" else ""
        return f"{self.name}, {self.agents}, {who}{lapses}{window}{eyes}"

    @property
    def who(self) -> str:
        """Return the responder of this arm's team, in words."""
        who = self.member if self.member == self.manager else f"{self.member}, manager {self.manager}"
        return f"{self.agents} agents, {who}"

    def context(self, episode: Episode) -> HouseholdContext:
        """Return the context of the graph."""
        alone = self.method == "LLM"
        return HouseholdContext(
            member=self.member,
            manager=self.manager,
            allocation=self.allocation and not alone,
            summary=self.summary and not alone,
            member_lapses=self.member_lapses,
            manager_lapses=self.manager_lapses,
            window=self.window,
            setting=self.setting,
            seed=episode.seed,
        )


@dataclass(frozen=True)
class Plan:
    """The arms of tables 1 and 2, of figure 3a (a model each) and of figure 3b (weaker roles).

    `narrow` holds MiTa with a narrower window, and the same without the summary.
    """

    arms: list[Arm]
    models: list[Arm]
    weaker: list[Arm]
    narrow: list[Arm] = field(default_factory=list)

    @property
    def setting(self) -> Setting:
        """Return the setting that all of its arms observe."""
        return self.arms[0].setting

    @property
    def every(self) -> list[Arm]:
        """Return each arm once, in the order of the tables."""
        return list(dict.fromkeys([*self.arms, *self.models, *self.weaker, *self.narrow]))

    @property
    def ablations(self) -> list[Arm]:
        """Return the arms that lack a part."""
        return [arm for arm in self.arms if arm.name.startswith("w/o")]

    @property
    def main(self) -> list[Arm]:
        """Return the arms of table 1."""
        return [arm for arm in self.arms if arm not in self.ablations]

    @property
    def base(self) -> Arm | None:
        """Return MHP with one agent, against which efficiency improves."""
        return next((arm for arm in self.arms if (arm.name, arm.agents) == ("MHP", 1)), None)

    @property
    def mita(self) -> Arm | None:
        """Return MiTa with the most agents."""
        return max((arm for arm in self.arms if arm.name == "MiTa"), key=lambda arm: arm.agents, default=None)

    @property
    def compared(self) -> list[tuple[str, Arm, Arm | None, float | None]]:
        """Return arms that lack something, each beside the whole one, and the paper's difference."""
        found: list[tuple[str, Arm, Arm | None, float | None]] = []
        if (mita := self.mita) is not None:
            paper = TABLE_2[mita.setting]
            found += [(arm.name, arm, mita, paper[arm.name] - paper["MiTa"]) for arm in self.ablations]
        if self.narrow:
            whole, without = self.narrow
            found.append((f"w/o summary, window {whole.window}", without, whole, None))
        found += [(f"3a {arm.who}", arm, None, None) for arm in self.models]
        papers = zip(FIGURE_3B.items(), self.weaker[1:], strict=False)
        return found + [(f"3b {label}", arm, self.weaker[0], paper) for (label, paper), arm in papers]

    @property
    def pairs(self) -> list[tuple[Arm, Arm]]:
        """Return MiTa beside each rival and ablation of its size."""
        return [
            (one, other)
            for one in self.arms
            for other in self.arms
            if one.agents == other.agents and one != other and one.name == "MiTa"
        ]


def table_arms(agents: Sequence[int], methods: Sequence[str], member: str, manager: str) -> list[Arm]:
    """Return the arms of tables 1 and 2: those of the chosen methods that the paper has at each size."""
    made = [
        Arm(method, count, member, manager)
        for count in sorted(agents)
        for method in (("MHP", "LLM") if count == 1 else ("MHP", "CoELA", "ProAgent", "MiTa"))
        if method in methods
    ]
    largest = max(agents)
    if "MiTa" in methods and largest > 1:
        made.append(Arm("MiTa", largest, member, manager, allocation=False))
        made.append(Arm("MiTa", largest, member, manager, summary=False))
    return made
