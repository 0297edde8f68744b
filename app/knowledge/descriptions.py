"""The descriptions of fields that the answers about all kinds of statements have. Pure."""

SCOPE = "The scope in which it holds."
CHARACTER = "The character, if the scope is `character`."
SOURCES = "The messages of the chat that it was learnt from: `message:<id>`. Empty if no chat is given in the path."
