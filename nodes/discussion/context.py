"""Context of a discussion's steps: the team, the conversation, and what the speaker is shown of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langgraph.runtime import Runtime
from pydantic import Field

from mneme.core.errors import BadInput
from mneme.library.teams.selection import part_of
from mneme.library.teams.team import CHARACTERS_PER_TOKEN, Role, Team, load_team, read_team, shipped
from mneme.models.asking.asking import resolve
from mneme.models.asking.counting import tokens
from mneme.models.ollama.tokenizers import Count, counter_of
from mneme.nodes.context import OwnedByTeam, ledger_of, responder, team_of
from mneme.nodes.shared_memory import SharesMemory, lines_of
from mneme.nodes.task_memories.f_context import Window, f_context
from mneme.prompts.discussion.memory_template import Slots
from mneme.stores.discussions.discussions import Conversation, Discussion, Discussions, Turn, acceptance
from mneme.stores.discussions.issues import Issue, issues_of

TURN_SHARES = {"contribute": 0.5, "delegate": 0.25, "integrate": 0.75, "evaluate": 0.25}
"""Length of a turn as a share of the tokens that task and memory leave for turns."""
MAX_TURN_CHARS = {"contribute": 1500, "delegate": 1500, "integrate": 4000, "evaluate": 1500}
"""Maximum characters of a turn. A model's server enforces bounds up to 1,999; a summary needs more, since no
proposal may be missing in it."""
MIN_TURN_CHARS = 400


class DiscussionContext(OwnedByTeam, SharesMemory):
    """The models, the memory and the person of a discussion; `team` is the owner of the discussions."""

    agents: str = responder("Who answers for every role that names no model.")
    memory: Literal["intrinsic", "none"] = Field(
        "intrinsic", description="The agents' memory; `none` is the paper's baseline: the newest turns alone."
    )
    context_tokens: int = Field(
        0, ge=0, description="Tokens of task, memory and turns; 0: as the team has it."
    )
    max_turns: int = Field(
        0, ge=0, le=10_000, description="Bound on turns, at most 10000; 0: as the team has it."
    )
    person: str = Field(
        "",
        description="The role that a person speaks for; the run waits at its turns.",
        examples=["data_engineer"],
    )
    approve: bool = Field(False, description="Whether a person approves the document before it is final.")

    carry: bool = Field(
        False,
        description="Whether agents begin with what they carry from this team's earlier discussions, and "
        "carry what they remember of this one on.",
    )


DiscussionRuntime = Runtime[DiscussionContext]


def team_given(given: Any) -> Team:
    """Return the team that an input names or contains; a client's path is never opened. Raises BadInput."""
    if not isinstance(given, str):
        return read_team(given)
    if given not in shipped():
        hint = f"One of {', '.join(shipped())}, or a whole team."
        raise BadInput(f"team: there is no team {given!r}.", hint)
    return load_team(given)


def discussions_of(runtime: DiscussionRuntime) -> Discussions:
    """Return the discussions of this run's owner."""
    return Discussions(ledger_of(runtime), team_of(runtime))


def who_answers(role: Role, context: DiscussionContext) -> str:
    return role.model or context.agents


@dataclass
class Table:
    """One discussion as a step uses it: the team, its turns, and the run."""

    about: Discussion
    team: Team
    discussions: Discussions
    conversation: Conversation
    context: DiscussionContext
    runtime: DiscussionRuntime
    shared: Sequence[str] = ()
    """Other workflows' memories about the task, as the agents are shown them."""

    @classmethod
    async def of(cls, discussion_id: str, runtime: DiscussionRuntime) -> "Table":
        """Return the discussion with that id, which must have been opened. Raises NotFound."""
        discussions = discussions_of(runtime)
        about = await discussions.get(discussion_id)
        conversation = discussions.conversation(discussion_id)
        shared = await lines_of(runtime, about.shared)
        return cls(about, read_team(about.team), discussions, conversation, runtime.context, runtime, shared)

    @property
    def budget(self) -> int:
        """Return the tokens for task, memory and turns: the context's, less those of shared memories."""
        return self.about.context_tokens - sum(map(tokens, self.shared))

    @property
    def memory_tokens(self) -> int:
        """Return the bound of a memory in tokens: the team's, or the same share of a smaller context."""
        return self.team.memory_within(self.budget)

    @property
    def is_intrinsic(self) -> bool:
        return self.about.memory == "intrinsic"

    def room(self, role: Role, count: Count) -> int:
        """Return the maximum characters of a turn, a share of the tokens that others have left."""
        # What task and memory leave in the readers' contexts, which have the same bounds as this role's.
        left = self.budget - count(self.about.task) - self.memory_tokens
        part = part_of(self.team, role.name)
        return max(
            MIN_TURN_CHARS, min(MAX_TURN_CHARS[part], round(CHARACTERS_PER_TOKEN * left * TURN_SHARES[part]))
        )

    async def shown_to(self, role: Role, upto: int) -> Window:
        """Return C_{n,m}: the context of this role after that turn (equation 1)."""
        count = await counter_of(await resolve(who_answers(role, self.context)))
        memory = ""
        if self.is_intrinsic:  # M_{n,m} as its agent is shown it
            memory = str(Slots((await self.discussions.memory(self.about.id, role.name).now()).memory))
        turns = await self.newest(upto, self.budget, count)
        return f_context(self.about.task, memory, [str(turn) for turn in turns], self.budget, count)

    def shown_as(self, role: Role, window: Window, issues: Sequence[Issue]) -> dict[str, Any]:
        """Return the fields about a role and its context that are in every question of a discussion."""
        document = self.team.document
        return {
            "role": role.title,
            "duties": role.description,
            "task": window.task,
            "shared": list(self.shared),
            "memory": window.memory,
            "turns": window.turns,
            "item": document.item,
            "fields": ", ".join(document.item_fields),
            "issues": [str(issue) for issue in issues],
        }

    async def unsettled(self, upto: int) -> list[Issue]:
        """Return the issues raised up to a turn and not accepted as answered, with titles of roles."""
        found = issues_of(await self.conversation.all(upto))
        unsettled = [issue for issue in found if issue.status != "accepted"]
        return [each.model_copy(update={"concerns": self.titles(each.concerns)}) for each in unsettled]

    async def outstanding(self, names: Sequence[str], upto: int) -> list[str]:
        """Return the titles of roles that do not accept, with the turn that ended an earlier acceptance."""
        turns = await self.conversation.all(upto)
        told = ((self.team.role(name).title, *acceptance(turns, name)) for name in names)
        return [
            f"{title} (accepted in turn {accepted}; turn {ended} ended that)" if accepted else title
            for title, accepted, ended in told
        ]

    def titles(self, names: Sequence[str]) -> list[str]:
        """Return the titles of these roles."""
        return [self.team.role(name).title for name in names]

    async def newest(self, upto: int, enough: int, count: Count) -> Sequence[Turn]:
        """Return the newest turns that fill the context, oldest first."""
        turns: list[Turn] = []
        async for turn in self.conversation.newest_first(upto):
            turns.append(turn)
            enough -= count(str(turn))
            if enough < 0:  # read backwards, so that a long discussion is not read whole for each turn
                break
        return turns[::-1]
