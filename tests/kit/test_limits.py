import pytest

from app.kit.limits import UNLIMITED, TokenLimits


@pytest.mark.parametrize(
    ("limits", "tenant", "limit_tokens"),
    [
        (UNLIMITED, "a", None),
        (TokenLimits(100), "a", 100),
        (TokenLimits(100, {"a": 5}), "a", 5),
        (TokenLimits(100, {"a": None}), "a", None),
        (TokenLimits(None, {"a": 5}), "b", None),
    ],
)
def test_a_tenants_own_limit_replaces_the_common_one(
    limits: TokenLimits, tenant: str, limit_tokens: int | None
) -> None:
    assert limits.limit_of(tenant) == limit_tokens


def test_a_limit_is_reached_when_usage_equals_it() -> None:
    assert [TokenLimits(100).is_reached("a", used) for used in (0, 99, 100, 101)] == [False, False, True, True]
    assert not UNLIMITED.is_reached("a", 10**12)


@pytest.mark.parametrize(
    ("limits", "anyone"),
    [
        (UNLIMITED, False),
        (TokenLimits(None, {"a": None}), False),
        (TokenLimits(None, {"a": 5}), True),
        (TokenLimits(100, {"a": None}), True),
    ],
)
def test_limits_anyone_is_true_if_any_tenant_has_a_limit(limits: TokenLimits, anyone: bool) -> None:
    assert limits.limits_anyone() is anyone
