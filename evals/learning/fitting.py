"""Curves of learning, fitted by likelihood and compared by Akaike's criterion (AIC).

Four shapes for a cost that falls with the number n of tasks: it stays (`constant`), falls for ever, ever more
slowly (`power law`, a·n^-b), falls to nothing (`exponential`, a·e^(-n/t)), or falls to what experience cannot
take away (`ceiling`, c + a·e^(-n/t), named by what it means for success). What is fitted are the tasks
themselves, not a moving average, which would feign certainty.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import log, pi
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Likelihood = Literal["normal", "lognormal", "binomial"]
"""How a task's value scatters: evenly, in proportion, or as yes (1) and no (0)."""
Values = NDArray[np.float64]
Shape = Callable[..., Values]
LEAST, STEP = 1e-9, 1e-5
SETTLED = 20.0
"""By which the part that experience takes away has shrunk where a curve is said to have settled."""


SHAPES: dict[str, tuple[Shape, tuple[str, ...]]] = {
    "constant": (np.full_like, ("c",)),
    "power law": (lambda n, a, b: a * n ** (-b), ("a", "b")),
    "exponential": (lambda n, a, t: a * np.exp(-n / t), ("a", "t")),
    "ceiling": (lambda n, c, a, t: c + a * np.exp(-n / t), ("c", "a", "t")),
}
BOUNDS = {"a": (LEAST, np.inf), "b": (0.0, 5.0), "c": (0.0, np.inf), "t": (1.0, np.inf)}
"""A cost is none below nothing, none that rises, and no fall is over before the first task."""


@dataclass(frozen=True)
class Fit:
    """One shape, fitted: its figures with their standard errors, and its AIC."""

    shape: str
    figures: dict[str, float]
    errors: dict[str, float]
    aic: float

    def at(self, n: Sequence[float] | Values) -> Values:
        """Return the curve at the numbers of tasks."""
        return SHAPES[self.shape][0](np.asarray(n, dtype=float), *self.figures.values())

    def __str__(self) -> str:
        figures = [f"{name} {value:.3g} ± {self.errors[name]:.1g}" for name, value in self.figures.items()]
        settled = [] if self.settled_at is None else [f"settled by task {self.settled_at:.0f}"]
        return "; ".join([", ".join(figures), *settled])

    @property
    def settled_at(self) -> float | None:
        """Return the task by which 95 % of the fall is over; None for a shape that never settles."""
        return self.figures["t"] * log(SETTLED) if self.shape == "ceiling" else None


def fit_all(
    at: Sequence[float] | Values, values: Sequence[float] | Values, likelihood: Likelihood
) -> list[Fit]:
    """Fit every shape to one value for each task number, the best by AIC first.

    Raises ValueError for fewer values than a curve has figures.
    """
    n, y = np.asarray(at, dtype=float), np.asarray(values, dtype=float)
    if len(y) < 5:
        raise ValueError("five tasks at the least make a curve")
    return sorted((_fit(shape, n, y, likelihood) for shape in SHAPES), key=lambda fit: fit.aic)


def weights(fits: Sequence[Fit]) -> list[float]:
    """Return Akaike's weights: how likely each shape is the best of these for new tasks."""
    raw = np.exp([(fits[0].aic - fit.aic) / 2 for fit in fits])
    return [float(each) for each in raw / raw.sum()]


def _fit(shape: str, n: Values, y: Values, likelihood: Likelihood) -> Fit:
    """Look for the most likely figures from several starts."""
    curve, names = SHAPES[shape]

    def against(figures: Values) -> float:
        return _unlikely(curve(n, *figures), y, likelihood)

    bounds = [BOUNDS[name] for name in names]
    found = [
        minimize(against, start, method="Nelder-Mead", bounds=bounds, options={"maxiter": 4_000})
        for start in _starts(names, n, y)
    ]
    best = min(found, key=lambda each: float(each.fun))
    errors = np.sqrt(np.maximum(np.diag(_covariance(curve, best.x, n, y, likelihood)), 0.0))
    count = len(names) + (likelihood != "binomial")  # and the scatter
    return Fit(
        shape=shape,
        figures=dict(zip(names, map(float, best.x), strict=True)),
        errors=dict(zip(names, map(float, errors), strict=True)),
        aic=2 * count + 2 * float(best.fun),
    )


def _unlikely(curve: Values, y: Values, likelihood: Likelihood) -> float:
    """Return the negative log-likelihood of the values, under the most likely scatter."""
    if likelihood == "binomial":
        p = np.clip(curve, LEAST, 1 - LEAST)
        return np.inf if curve.max() > 1 + LEAST else -float(np.sum(y * np.log(p) + (1 - y) * np.log(1 - p)))
    if likelihood == "lognormal":
        logged = np.log(np.maximum(y, LEAST))
        return _unlikely(np.log(np.maximum(curve, LEAST)), logged, "normal") + float(logged.sum())
    scatter = max(float(np.mean((y - curve) ** 2)), LEAST**2)
    return len(y) / 2 * (log(2 * pi * scatter) + 1)


def _starts(names: Sequence[str], n: Values, y: Values) -> Iterator[tuple[float, ...]]:
    """Yield where to begin: the ends of the data say how high, three guesses say how fast."""
    tenth, mean = max(1, len(y) // 10), float(y.mean())
    begin, end = (
        0.9 * float(y[:tenth].mean()),
        0.9 * float(y[-tenth:].mean()),
    )  # a share stays below the whole
    lows = [max(end, mean / 10), mean / 100] if len(names) > 2 else [max(end, mean / 10)]
    for low, (slope, span) in product(lows, ((0.05, 0.02), (0.3, 0.1), (1.0, 0.5))):
        fall = max(begin - low, mean / 20) if "c" in names else 0.9 * mean
        first = {"c": low, "a": fall, "b": slope, "t": max(span * float(n.max()), 1.0)}
        yield tuple(first[name] for name in names)


def _covariance(curve: Shape, figures: Values, n: Values, y: Values, likelihood: Likelihood) -> Values:
    """Return the covariance of the figures: the inverse of Fisher's information."""
    fitted, scales = np.maximum(curve(n, *figures), LEAST), np.maximum(np.abs(figures), STEP)
    moved = (figures + step for step in np.diag(STEP * scales))
    slopes = np.array([(curve(n, *each) - fitted) / STEP for each in moved])  # by a figure's own scale
    scatter = np.full_like(n, max(float(np.mean((y - fitted) ** 2)), LEAST**2))
    if likelihood == "binomial":
        scatter = np.maximum(fitted * (1 - fitted), LEAST)
    elif likelihood == "lognormal":
        scatter = fitted**2 * float(np.mean((np.log(np.maximum(y, LEAST)) - np.log(fitted)) ** 2))
    return np.asarray(np.outer(scales, scales) * np.linalg.pinv((slopes / scatter) @ slopes.T), dtype=float)
