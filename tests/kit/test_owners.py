from uuid import uuid4

import pytest

from app.kit.owners import Owner


def test_the_owner_of_a_line_has_its_key_and_id() -> None:
    key, line_id = uuid4(), uuid4()
    assert Owner.of_line("t", key, line_id).line == (key, line_id)


@pytest.mark.parametrize("owner", [Owner.of_user("t", "mira"), Owner.of_tenant("t")])
def test_a_user_and_a_tenant_have_no_line(owner: Owner) -> None:
    with pytest.raises(LookupError, match="not a line"):
        _ = owner.line
