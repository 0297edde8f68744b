"""What a shell relies on: the verbs without HTTP in front of them."""

import pytest

from app.keys.errors import KeyNotFound
from app.keys.service import create_key, list_keys, revoke_key
from app.kit.db import Database
from app.kit.errors import Invalid
from tests.conftest import NOON
from tests.keys.service import made_key


@pytest.mark.parametrize(
    ("tenant", "scopes", "blamed"),
    [
        ("a b", ["read"], "tenant"),
        ("a\n", ["read"], "tenant"),
        ("", ["read"], "tenant"),
        ("a", ["root"], "scopes"),
        ("a", [""], "scopes"),
        ("a", [], "scopes"),
    ],
)
async def test_an_invalid_key_is_reported_in_one_line(
    database: Database, tenant: str, scopes: list[str], blamed: str
) -> None:
    async with database.unit_of_work() as db_session:
        with pytest.raises(Invalid, match=rf"^{blamed}: [^\n]+$"):
            await create_key(db_session, tenant, scopes, NOON)


async def test_scopes_are_ordered_and_distinct(database: Database) -> None:
    assert (await made_key(database, "admin", "read", "admin")).scopes == ["read", "admin"]


async def test_a_revoked_key_is_not_listed_nor_revoked_twice(fresh_database: Database) -> None:
    kept, revoked = await made_key(fresh_database), await made_key(fresh_database)
    async with fresh_database.unit_of_work() as db_session:
        await revoke_key(db_session, revoked.key_id, NOON)
        assert [key.key_id for key in await list_keys(db_session, limit=10)] == [kept.key_id]
        with pytest.raises(KeyNotFound):
            await revoke_key(db_session, revoked.key_id, NOON)
