"""What the tests of all layers need to know of sessions."""

import httpx

from tests.layers.sample import LayerSample, RichRows
from tests.talk import append, ok, said


async def end_session(api: httpx.AsyncClient) -> None:
    ok(await api.post("/v1/chats/c/sessions/break"), 201)


async def begin_another(api: httpx.AsyncClient, chat: str) -> dict[str, str]:
    """A message, so that the session that the example ends is not empty."""
    await append(api, [said(900)], chat.rpartition("/")[2])
    return {}


SAMPLE = LayerSample(
    begins={"sessions": lambda row: 0 if row["number"] == 1 else row["first_seq"]},
    rich=RichRows(write_last=end_session),
    write=end_session,
    before={"end_session": begin_another},
    missing={"/sessions": "session_not_found"},
    in_presets={
        "sessions.enabled": (False,) * 6,
        "sessions.idle_timeout_s": (None,) * 6,
        "sessions.daily_reset_hour": (None,) * 6,
        "sessions.max_turns": (None,) * 6,
    },
)
