"""PDDL problems from files: AgentBoard's layout, or any folder with a domain and its problems.

A domain is `FOLDER/domain.pddl` beside its problems or, as in AgentBoard, `NAME.pddl` beside a folder `NAME/`
of problems; folders are searched at any depth.
"""

import re
from pathlib import Path

from mneme.core.errors import BadInput
from mneme.environments.pddl.compiling import compile_problem
from mneme.environments.pddl.wording import called, goal_text
from mneme.environments.pddl.world import Problem

HARD = 6
"""Minimum number of goal literals of a hard problem; our limit, since AgentBoard's files have no labels."""
PROBLEM_NUMBER = re.compile(r"(\d+)")


def load(domain_file: Path | str, problem_file: Path | str) -> Problem:
    """Load one problem. Raises BadInput naming the file and the place of what is wrong in it."""
    domain, problem = Path(domain_file), Path(problem_file)
    return make(_text(domain), _text(problem), problem.stem, (str(domain), str(problem)))


def load_one(problem_file: Path | str) -> Problem:
    """Load a problem with the domain that lies beside it or above. Raises BadInput."""
    problem = Path(problem_file)
    domain = _domain_of(problem)
    if domain is None:
        raise BadInput(f"{problem} is a domain file.", "Give a problem's file.")
    return load(domain, problem)


def load_folder(path: Path | str) -> list[Problem]:
    """Load every problem under a folder, by domain and number. Raises BadInput for a file or for none."""
    folder = Path(path)
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder.", "Give a folder with domain.pddl and its problems.")
    pairs = [(_domain_of(problem), problem) for problem in folder.rglob("*.pddl")]
    known = [(domain, problem) for domain, problem in pairs if domain is not None and domain != problem]
    found = [load(domain, problem) for domain, problem in sorted(known, key=_place)]
    if not found:
        raise BadInput(f"{folder} has no PDDL problems.", "Put domain.pddl next to its problem files.")
    return found


def make(domain_pddl: str, problem_pddl: str, name: str, files: tuple[str, str]) -> Problem:
    """Make a problem from two texts; `files` are their names for error messages."""
    try:
        compiled = compile_problem(domain_pddl, problem_pddl)
    except BadInput as error:
        of_domain = str(error).replace("The domain: ", f"{files[0]}: ", 1)
        raise BadInput(of_domain.replace("The problem: ", f"{files[1]}: ", 1), error.hint) from error
    domain = called(compiled.domain)
    return Problem(
        name=f"{domain}/{name}",
        domain=domain,
        difficulty="hard" if len(compiled.goal) >= HARD else "easy",
        goal=goal_text(domain, compiled.goal),
        domain_pddl=domain_pddl,
        problem_pddl=problem_pddl,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"Cannot read {path}: {error}.", "Give a PDDL file of text.") from error


def _domain_of(problem: Path) -> Path | None:
    """Return the domain file of a problem; None if the file is a domain itself."""
    beside = problem.parent / "domain.pddl"
    above = problem.parent.parent / f"{problem.parent.name}.pddl"
    # AgentBoard's NAME.pddl is the domain of the problems in NAME/.
    if problem.name == "domain.pddl" or (problem.parent / problem.stem).is_dir():
        return None
    for domain in (beside, above):
        if domain.is_file():
            return domain
    raise BadInput(f"{problem} has no domain.", f"Put its domain at {beside} or {above}.")


def _place(pair: tuple[Path, Path]) -> tuple[str, list[tuple[int, str]]]:
    """Sort problem 2 before problem 10."""
    problem = pair[1]
    parts = PROBLEM_NUMBER.split(problem.name)
    return str(problem.parent), [(int(part), "") if part.isdigit() else (0, part) for part in parts]
