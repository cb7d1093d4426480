"""What the graphs load of the stores: knowledge cards only where something is learned."""

import subprocess
import sys
from pathlib import Path

GRAPHS = Path(__file__).parents[2] / "graphs"
LEARNING = {"compound_learning", "consolidation", "dispute_resolution"}


def test_only_learning_loads_knowledge_cards() -> None:
    names = [path.stem for path in GRAPHS.glob("*.py") if path.stem not in {*LEARNING, "__init__"}]
    assert len(names) > len(LEARNING)
    lines = [f"import mneme.graphs.{name}" for name in names]
    lines.append("import sys; sys.exit(any(name.startswith('mneme.stores.cards') for name in sys.modules))")
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
