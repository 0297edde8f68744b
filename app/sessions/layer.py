"""The layer of sessions."""

from app.layers.layer import Layer
from app.layers.stored_json import Number, StoredJson, UuidText
from app.sessions.handlers import end_sessions, on_change, on_move, on_truncate
from app.sessions.models import ChatSession
from app.sessions.open_session import NAME
from app.sessions.routes import router
from app.sessions.settings import SessionSettings


class StoredSession(StoredJson):
    """`OpenSession` of `open_session.py`, the layer's cursor."""

    id: UuidText
    number: Number
    first_seq: Number
    turns: Number | None
    lost_messages: bool = False


LAYER = Layer(
    name=NAME,
    settings=SessionSettings,
    cursor=StoredSession,
    models=(ChatSession,),
    routers=(router,),
    on_change=on_change,
    on_truncate=on_truncate,
    on_move=on_move,
    end_sessions=end_sessions,
)
