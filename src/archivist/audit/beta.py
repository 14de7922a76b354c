"""What counts of good and bad outcomes let one believe: the Beta distribution, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt

LEVEL = 0.95
_PRECISE = 1e-14
_TINY = 1e-300
_MOST_TERMS = 20_000
_HALVINGS = 60
# Nodes, and standard deviations to either side, of the sum that stands for an integral.
_NODES = 400
_REACH = 12.0


@dataclass(frozen=True, slots=True)
class Beta:
    """What is believed of a share after `a` good and `b` bad outcomes, those of the prior among them."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        """Return the share to be expected."""
        return self.a / (self.a + self.b)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the bounds between which the share lies with 95 % certainty, the rest halved outside."""
        return self.quantile((1 - LEVEL) / 2), self.quantile((1 + LEVEL) / 2)

    def cdf(self, share: float) -> float:
        """Return the chance that the share is at most this."""
        return incomplete_beta(self.a, self.b, share)

    def quantile(self, chance: float) -> float:
        """Return the share that is not exceeded with this chance."""
        return bisect_root(lambda share: self.cdf(share) - chance, 0.0, 1.0)

    def chance_above(self, other: Beta | float) -> float:
        """Return the chance that the share is above another's, or above a fixed one."""
        return self._above(other) if isinstance(other, Beta) else 1.0 - self.cdf(other)

    def _above(self, other: Beta) -> float:
        """Sum density times the other's distribution over the logit, where both are smooth to the ends."""
        middle = log(self.a / self.b)
        spread = _REACH * sqrt(1 / self.a + 1 / self.b + 1 / self.a**2 + 1 / self.b**2)
        step = 2 * spread / _NODES
        total = weight = 0.0
        for node in range(_NODES + 1):
            place = middle - spread + node * step
            density = exp(self.a * -_softplus(-place) + self.b * -_softplus(place) - log_beta(self.a, self.b))
            weight += density
            if density > _PRECISE:
                total += density * other.cdf(1 / (1 + exp(-place)))
        return min(1.0, total / weight)


def posterior(helpful: int, ineffective: int, prior: tuple[float, float] = (1, 1)) -> Beta:
    """Return what to believe of a lesson's helpful share; before the first verdict anything is as likely."""
    return Beta(prior[0] + helpful, prior[1] + ineffective)


def bisect_root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses zero between two bounds."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(a * log(x) + b * log1p(-x) - log_beta(a, b))
    # The fraction converges fast on this side of the mean only; the other side is its mirror image.
    if x > (a + 1) / (a + b + 2):
        return 1.0 - front * _fraction(b, a, 1 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        before = value
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            value *= c * d
        if abs(value - before) <= _PRECISE * abs(value):
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _softplus(value: float) -> float:
    return max(value, 0.0) + log1p(exp(-abs(value)))
