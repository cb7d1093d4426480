"""The question of ProAgent (Zhang et al., AAAI 2024): infer the teammates' intentions, and choose a skill.

One question as published (analysis, the teammates' intentions, one skill), asked of each agent with its
teammates' observed and expected actions, so that it corrects its beliefs. There are no messages.

Simplified: the published agent sees the whole kitchen and its one teammate's every skill; here an agent
sees its own room, so behaviour is known from what was seen there. One reply covers all teammates.
"""

from typing import Annotated

from pydantic import BaseModel, Field

from mneme.prompts.household.household import Spot, View
from mneme.prompts.prompt import PLAIN, Prompt, Reason, Schemas, one_of

UNKNOWN_ROOM = -1  # a server's grammar may not know that a number can be null


class Observed(BaseModel):
    """Observations of a teammate, and the intention that was inferred before."""

    teammate: int
    name: str
    seen: int | None = Field(None, description="The step at which it was last seen.")
    room: int = Field(UNKNOWN_ROOM, description="Where it was then.")
    hands: list[int] = Field([], description="What it held then.")
    did: list[str] = Field([], description="Its behaviour as it was seen, oldest first.")
    intended: int = Field(UNKNOWN_ROOM, description="The target that it was thought to go for.")
    since: int = Field(0, description="The step at which that was thought.")
    due: int = Field(0, description="The step by which it should have done that.")
    contradicted: list[int] = Field([], description="Targets of which it was seen not to go for them.")
    labels: dict[int, str] = Field({}, description="What these targets are called.")

    def __str__(self) -> str:
        if self.seen is None:
            return f"{self.name} (member {self.teammate}): not seen yet"
        did = "; ".join(self.did) or "nothing"
        goes_for = self._label(self.intended)
        thought = f"; at step {self.since} you thought it goes for {goes_for}" if self.intended >= 0 else ""
        others = " nor ".join(map(self._label, self.contradicted))
        wrong = f"; it does not go for {others}, as you had thought" if others else ""
        who = f"{self.name} (member {self.teammate})"
        return f"{who}: last seen at step {self.seen}; it did: {did}{thought}{wrong}"

    def _label(self, target: int) -> str:
        return self.labels.get(target, f"({target})")


class Scene(View):
    """The input of a ProAgent agent's planning."""

    name: str
    belief: str = Field("", description="What it knows of the household, in words.")
    observed: Annotated[list[Observed], PLAIN] = Field([])


class Intention(BaseModel):
    """What a teammate seems to be doing."""

    teammate: int = Field(description="The member's number.")
    reason: Reason
    target: int = Field(description="The id of the thing or place that it goes for; -1 if unknown.")


class Plan(BaseModel):
    """Analysis, the teammates' intentions, and the one skill to use now."""

    analysis: Reason = Field(description="What the scene asks for, in one or two sentences.")
    intentions: list[Intention] = Field(description="One for each teammate.")
    option: int = Field(description="The number of one of the possible skills.")


plan_skill = Prompt(
    name="plan_skill",
    given=Scene,
    answer=Plan,
    system="""You are a member of a team that does housework together. You cannot talk with your teammates.
First analyse the scene, then infer what each teammate intends from what it was seen to do (correct what you
had thought of it where its behaviour contradicts that), then plan one skill for yourself that fits theirs:
do not go for what a teammate goes for. Skills: goexplore a room: walk into it and see what lies there.
gocheck a container: open it and see what is inside. gograb a thing: take it; you have two hands. goput:
carry what you hold to where it belongs. wait: do nothing, for five steps at most.
Give one intention for each teammate, by its member number. Its target is the number in parentheses of the
room, container or thing that it goes for next, and where it brings a thing, of the place where that belongs;
-1 where it is unknown.""",
    examples=[
        Plan(
            analysis="Two umbrellas are still to be brought to the hat stand.",
            intentions=[
                Intention(
                    teammate=1, reason="It walks towards the wicker basket with empty hands.", target=903
                )
            ],
            option=2,
        )
    ],
    user="""You are $name (member $me).

The task, and how much of it you know to be done:
$needs

What you know:
$belief

The teammates, as you saw them:
$observed

What you did:
$history

Possible skills:
$options""",
)


@plan_skill.bound
def of_what_is_known(given: Scene) -> Schemas:
    """Offer the skills, one intention for each teammate, and the ids of known things and places."""
    known: list[Spot] = [*given.rooms, *given.containers, *given.items, *given.needs]
    count = len(given.observed)
    return {
        "intentions": {"minItems": count, "maxItems": count},  # of each teammate, since all are in one reply
        "intentions[].teammate": one_of({each.teammate for each in given.observed}),
        "intentions[].target": one_of({UNKNOWN_ROOM, *(spot.id for spot in known)}),
        "option": one_of(range(len(given.options))),
    }


def is_done(given: View, target: int) -> bool:
    """Return whether a target is known to need no action: checked, entered, taken or placed."""
    if any(room.id == target and room.seen is not None for room in given.rooms):
        return True
    if any(each.id == target and each.checked is not None for each in given.containers):
        return True
    return any(item.id == target and (item.placed or item.held_by is not None) for item in given.items)
