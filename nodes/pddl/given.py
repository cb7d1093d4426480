"""Which problem a team in a PDDL world is given: one that is drawn, or a whole one."""

from typing import Annotated, Any

from langgraph.channels import EphemeralValue
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypedDict

from mneme.core.errors import BadInput
from mneme.environments.pddl import SIZES, Domain, Problem, generate

LEAST = ", ".join(f"{domain} {least}" for domain, (least, _) in SIZES.items())
HINT = "Load it with environments.pddl.load, and give problem.model_dump()."


class Given(TypedDict, total=False):
    """A problem to be generated, or one as plain JSON; the same `task_id` is the same trial."""

    domain: Annotated[
        Domain,
        Field("gripper", description="The world of the problem.", examples=["gripper"]),
        EphemeralValue,
    ]
    seed: Annotated[
        int, Field(1, ge=0, description="Which problem of it is drawn.", examples=[1]), EphemeralValue
    ]
    size: Annotated[
        int | None,
        Field(None, description=f"How large; none: drawn by the seed. At least: {LEAST}.", examples=[4]),
        EphemeralValue,
    ]
    problem: Annotated[
        dict[str, Any],
        Field(
            {},
            description="Instead of a domain: a whole problem, as `problem.model_dump()` gives it.",
            examples=[
                {
                    "name": "mine/1",
                    "domain": "gripper",
                    "difficulty": "easy",
                    "goal": "The goal is: ball1 is at roomb.",
                    "domain_pddl": "(define (domain …) …)",
                    "problem_pddl": "(define (problem …) …)",
                }
            ],
        ),
    ]
    task_id: Annotated[
        str, Field("", description="The id of the trial. Else one is made.", examples=["trial-1"])
    ]


def problem_given(state: Given) -> Problem:
    """Return the problem of the input: one that is generated, or one that is given whole. Raises BadInput."""
    if state.get("problem") and not state.get("domain"):
        return whole_problem(state["problem"])
    asked = {name: state[name] for name in _Drawn.model_fields if state.get(name) is not None}  # type: ignore[literal-required]
    try:
        drawn = _Drawn.model_validate(asked)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"{first['loc'][0]}: {first['msg']}.", "Fix this field.") from error
    return generate(drawn.domain, drawn.seed, drawn.size)


class _Drawn(BaseModel):
    """Which problem is to be generated, checked: a graph's input may hold anything."""

    model_config = ConfigDict(strict=True)

    domain: Domain = "gripper"
    seed: int = Field(1, ge=0)
    size: int | None = None


def whole_problem(given: Any) -> Problem:
    if not given:
        raise BadInput("problem: none is given.", HINT)
    try:
        return Problem.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "problem"
        raise BadInput(f"The problem cannot be used: {where}: {first['msg']}.", HINT) from error
