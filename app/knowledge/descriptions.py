"""The descriptions of fields that the answers about all kinds of statements have. Pure."""

SCOPE = "The scope in which it holds."
CHARACTER = "The character, if the scope is `character`."
SOURCES = "The messages that it comes from, as `message:<id>`. Only messages of the chat in the path are listed."
