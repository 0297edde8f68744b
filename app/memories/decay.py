"""How memories fade with time. Pure.

The strength of a memory is `importance × 0.5^(age / half-life)`. Its logarithm to the base 2 is `log2(importance) -
(now - created) / half-life`. All memories that are compared have the same `now`, so their order is that of
`log2(importance) + created / half-life`, which does not change with time. So a query can sort by this number, and no
job has to update strengths.
"""

import math
from datetime import UTC, datetime, timedelta

HALF_LIFE_DAYS = 7.0

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


def strength(importance: float, age_days: float, *, half_life_days: float = HALF_LIFE_DAYS) -> float:
    """Return the strength of a memory with an `importance` from 0 to 1 after `age_days`.

    After one half-life it is half of the importance. If the age is negative, because the memory is dated after `now`,
    the strength exceeds the importance, so that the order is always that of `order_key`. Raises ValueError unless
    `half_life_days` is positive.
    """
    _check(half_life_days)
    return importance * math.exp2(-age_days / half_life_days)


def order_key(importance: float, created_at: datetime, *, half_life_days: float = HALF_LIFE_DAYS) -> float:
    """Return a number that is greater for the stronger of two memories, at any time.

    It is negative infinity for an importance of 0. `order_key(forget_below, now)` is the least key of the memories that
    are at least as strong as `forget_below` at `now`. `created_at` must be aware. Raises ValueError unless
    `half_life_days` is positive.
    """
    _check(half_life_days)
    born_days = (created_at - _EPOCH) / _DAY
    return math.log2(importance) + born_days / half_life_days if importance > 0 else -math.inf


def _check(half_life_days: float) -> None:
    if not half_life_days > 0:
        raise ValueError("a half-life must be positive")
