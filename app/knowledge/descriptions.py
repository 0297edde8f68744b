"""The descriptions of fields that the answers about all kinds of statements have. Pure."""

SCOPE = "The scope in which it holds."
CHARACTER = "The character, if the scope is `character`."
SOURCES = "From which messages of the chat in the path it was learnt: `message:<id>`. Empty if the path has no chat."
