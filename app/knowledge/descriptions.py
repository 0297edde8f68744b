"""The descriptions of fields that the answers about all kinds of statements have. Pure."""

SCOPE = (
    "Where it holds: in the `chat`, for the user with one `character`, for the `user`, or for all chats of the tenant "
    "(`global`)."
)
CHARACTER = "The character, if the scope is `character`; otherwise null."
SOURCES = (
    "The messages of this chat that it was learnt from: `message:<id>`. Empty if only a person wrote it, or if it was "
    "learnt only in other chats."
)
