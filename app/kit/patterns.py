"""The form of values in requests, with the words that error messages use for it."""

CHAT_ID_PATTERN = (
    r"^([A-Za-z0-9_:@-][A-Za-z0-9._:@-]{0,199}|\.[A-Za-z0-9_:@-][A-Za-z0-9._:@-]{0,198}|\.\.[A-Za-z0-9._:@-]{1,198})$"
)
"""A chat id: 1–200 characters, but not `.` or `..`, which clients remove from a URL."""

_WORDS = {
    r"\S": "must not be only white space",
    CHAT_ID_PATTERN: "must have 1 to 200 characters, each a letter from A to Z, a digit or one of . _ : @ -, and must "
    "not be . or ..",
}


def word_pattern(pattern: str) -> str:
    """Return what is wrong with a value that does not match `pattern`, as the end of a sentence."""
    return _WORDS.get(pattern, f"must have the form {pattern}")
