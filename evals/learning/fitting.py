"""Curves of learning, fitted by likelihood and compared by Akaike's criterion (AIC).

Four shapes for a cost that falls with the number n of tasks: it stays (`constant`), falls for ever, ever more
slowly (`power law`, a·n^-b), falls to nothing (`exponential`, a·e^(-n/t)), or falls to what experience cannot
take away (`ceiling`, c + a·e^(-n/t), named by what it means for success). What is fitted are the tasks
themselves, not a moving average, which would feign certainty.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log, pi
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import curve_fit, minimize

Likelihood = Literal["normal", "lognormal", "binomial"]
"""How a task's value scatters: evenly, in proportion, or as yes (1) and no (0)."""
Values = NDArray[np.float64]
Shape = Callable[..., Values]
LEAST = 1e-9
SHRUNK = 0.95
"""What takes a share that is more than the whole back, step by step."""
SETTLED = 20.0
"""By which the part that experience takes away has shrunk where a curve is said to have settled."""


def _constant(n: Values, c: float) -> Values:
    return np.full_like(n, c)


def _power(n: Values, a: float, b: float) -> Values:
    return a * n ** (-b)


def _exponential(n: Values, a: float, t: float) -> Values:
    return a * np.exp(-n / t)


def _ceiling(n: Values, c: float, a: float, t: float) -> Values:
    return c + a * np.exp(-n / t)


SHAPES: dict[str, tuple[Shape, tuple[str, ...]]] = {
    "constant": (_constant, ("c",)),
    "power law": (_power, ("a", "b")),
    "exponential": (_exponential, ("a", "t")),
    "ceiling": (_ceiling, ("c", "a", "t")),
}
BOUNDS = {"a": (LEAST, np.inf), "b": (0.0, 5.0), "c": (0.0, np.inf), "t": (1.0, np.inf)}
"""A cost is none below nothing, none that rises, and no fall is over before the first task."""
FIRST: dict[str, tuple[float, ...]] = {"b": (0.05, 0.3, 1.0), "t": (0.02, 0.1, 0.5)}
"""Where the search begins: three slopes, and three spans as shares of all tasks."""


@dataclass(frozen=True)
class Fit:
    """One shape, fitted: its figures with their standard errors, its likelihood and its AIC."""

    shape: str
    figures: dict[str, float]
    errors: dict[str, float]
    log_likelihood: float
    aic: float

    def at(self, n: Sequence[float] | Values) -> Values:
        """Return the curve at the numbers of tasks."""
        return SHAPES[self.shape][0](np.asarray(n, dtype=float), *self.figures.values())

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
    least = min(fit.aic for fit in fits)
    raw = [exp(-(fit.aic - least) / 2) for fit in fits]
    return [each / sum(raw) for each in raw]


def _fit(shape: str, n: Values, y: Values, likelihood: Likelihood) -> Fit:
    tried = [_tried(shape, n, y, likelihood, start) for start in _starts(shape, n, y)]
    best = max((each for each in tried if each), key=lambda fit: fit.log_likelihood, default=None)
    if best is None:
        raise ValueError(f"no {shape} fits these values")
    return best


def _starts(shape: str, n: Values, y: Values) -> list[tuple[float, ...]]:
    """Return where to begin: the ends of the data say how high, three guesses say how fast."""
    tenth = max(1, len(y) // 10)
    end, fall = float(y[-tenth:].mean()), float(y[:tenth].mean() - y[-tenth:].mean())
    high = {"c": max(end, LEAST), "a": max(fall if shape == "ceiling" else float(y.mean()), LEAST)}
    names = SHAPES[shape][1]
    fast = next((name for name in names if name in FIRST), None)
    if fast is None:
        return [tuple(high[name] for name in names)]
    scale = float(n.max()) if fast == "t" else 1.0
    return [
        tuple(high.get(name, max(guess * scale, BOUNDS[fast][0])) for name in names) for guess in FIRST[fast]
    ]


def _tried(shape: str, n: Values, y: Values, likelihood: Likelihood, start: tuple[float, ...]) -> Fit | None:
    names = SHAPES[shape][1]
    bounds = ([BOUNDS[name][0] for name in names], [BOUNDS[name][1] for name in names])
    curve = partial(_logged, SHAPES[shape][0]) if likelihood == "lognormal" else SHAPES[shape][0]
    target = np.log(np.maximum(y, LEAST)) if likelihood == "lognormal" else y
    try:
        found, spread = curve_fit(curve, n, target, p0=start, bounds=bounds, maxfev=20_000)
    except RuntimeError:  # it did not settle from this start; another may
        return None
    if likelihood == "binomial":
        found = _most_likely(curve, n, y, found, bounds)
        chance, count = _log_chance(curve(n, *found), y), len(names)
        spread = _spread_of(curve, n, y, found)
    else:
        chance = _normal_chance(target - curve(n, *found), target if likelihood == "lognormal" else None)
        count = len(names) + 1  # and the scatter
    errors = np.sqrt(np.maximum(np.diag(spread), 0.0))
    return Fit(
        shape=shape,
        figures=dict(zip(names, map(float, found), strict=True)),
        errors=dict(zip(names, map(float, errors), strict=True)),
        log_likelihood=chance,
        aic=2 * count - 2 * chance,
    )


def _logged(shape: Shape, n: Values, *figures: float) -> Values:
    return np.log(np.maximum(shape(n, *figures), LEAST))


def _normal_chance(residuals: Values, logged: Values | None) -> float:
    """Return the log-likelihood under the most likely scatter; of logged values, in the values' measure."""
    scatter = max(float(np.mean(residuals**2)), LEAST**2)
    chance = -len(residuals) / 2 * (log(2 * pi * scatter) + 1)
    return chance - (float(logged.sum()) if logged is not None else 0.0)


def _log_chance(p: Values, y: Values) -> float:
    inside = np.clip(p, LEAST, 1 - LEAST)
    return float(np.sum(y * np.log(inside) + (1 - y) * np.log(1 - inside)))


def _most_likely(curve: Shape, n: Values, y: Values, start: Values, bounds: Any) -> Values:
    """Return the figures under which yes and no are most likely, beginning with the least squares."""

    def against(figures: Values) -> float:
        p = curve(n, *figures)
        return -_log_chance(p, y) if p.max() <= 1 else np.inf

    while curve(n, *start).max() > 1:
        start = start * SHRUNK
    within = [(low, None if np.isinf(high) else high) for low, high in zip(*bounds, strict=True)]
    found = minimize(against, start, method="Nelder-Mead", bounds=within, options={"maxiter": 4_000})
    better: Values = found.x if found.fun <= against(start) else start
    return better


def _spread_of(curve: Shape, n: Values, y: Values, figures: Values) -> Values:
    """Return the covariance by Fisher's information at the most likely figures."""
    p = np.clip(curve(n, *figures), LEAST, 1 - LEAST)
    slopes = np.empty((len(figures), len(n)))
    for row, value in enumerate(figures):
        step = max(abs(value) * 1e-5, 1e-8)
        moved = figures.copy()
        moved[row] += step
        slopes[row] = (curve(n, *moved) - curve(n, *figures)) / step
    information = (slopes / (p * (1 - p))) @ slopes.T
    return np.asarray(np.linalg.pinv(information), dtype=float)
