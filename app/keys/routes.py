"""HTTP routes of keys and tokens."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from app.keys import service
from app.keys.credentials import KEY_ID_PATTERN
from app.keys.models import Key
from app.keys.schemas import KeyIn, KeyOut, NewKeyOut, TokenIn, TokenOut
from app.keys.service import DatabaseKeyring
from app.kit.auth import Admin, Anyone, KeyedRoute
from app.kit.db import after_commit
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor

router = APIRouter(prefix="/v1", tags=["keys"], route_class=KeyedRoute)


async def keyring(request: Request) -> DatabaseKeyring:
    """Return the application's keyring."""
    found: DatabaseKeyring = request.app.state.keyring
    return found


Ring = Annotated[DatabaseKeyring, Depends(keyring)]
KeyId = Annotated[str, Path(pattern=KEY_ID_PATTERN, description="The key's id.", examples=["3f9c2a7be014"])]


@router.post("/keys", status_code=201)
async def create_key(
    wanted: KeyIn, caller: Admin, db_session: Db, clock: Now, ring: Ring, response: Response
) -> NewKeyOut:
    """Create a key.

    The key is returned only once. As soon as a key exists, every request for data needs a key or a token.
    """
    service.require_admin_first(caller, wanted.scopes)
    created = await service.create_key(db_session, wanted.tenant, wanted.scopes, clock(), user_scope=wanted.user_scope)
    after_commit(db_session, ring.forget)
    response.headers["Cache-Control"] = "no-store"
    return NewKeyOut(
        id=created.key_id,
        tenant=created.tenant,
        scopes=created.scopes,
        user_scope=created.user_scope,
        key=created.text,
    )


@router.get("/keys")
async def list_keys(
    _caller: Admin, db_session: Db, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[KeyOut]:
    """List the keys of all tenants, newest first."""
    before = decode_cursor(cursor, datetime, str) if cursor else None
    found = await service.list_keys(db_session, before=(before[0], before[1]) if before else None, limit=limit + 1)
    page = found[:limit]
    last = encode_cursor(page[-1].created_at, page[-1].key_id) if len(found) > limit else None
    return Page(items=[_key_out(key) for key in page], next_cursor=last)


@router.get("/keys/{key_id}")
async def get_key(key_id: KeyId, _caller: Admin, db_session: Db) -> KeyOut:
    """Read a key, without its secret."""
    return _key_out(await service.get_key(db_session, key_id))


@router.delete("/keys/{key_id}", status_code=204)
async def revoke_key(key_id: KeyId, _caller: Admin, db_session: Db, clock: Now, ring: Ring) -> None:
    """Revoke a key and all tokens that were created with it."""
    await service.revoke_key(db_session, key_id, clock())
    after_commit(db_session, ring.forget)


@router.post("/tokens", status_code=201)
async def create_token(wanted: TokenIn, caller: Anyone, clock: Now, ring: Ring, response: Response) -> TokenOut:
    """Create a token for a browser.

    It permits at most what the key permits. If it is limited to a chat, it sees and writes only what is known in the
    chat itself, unless its key has `user_scope`.
    """
    token, expires_at = await service.issue_token(ring, caller, wanted, clock())
    response.headers["Cache-Control"] = "no-store"
    return TokenOut(token=token, expires_at=expires_at)


def _key_out(key: Key) -> KeyOut:
    return KeyOut(
        id=key.key_id,
        tenant=key.tenant,
        scopes=key.scopes,
        from_environment=key.from_environment,
        user_scope=key.user_scope,
        created_at=key.created_at,
    )
