"""How a fact is written in a prompt. Pure."""

HEADING = "## Facts"


def word_fact(key: str, value: str) -> str:
    """Return the line of a fact, without line breaks in the value."""
    return f"- {key}: {' '.join(value.split())}"
