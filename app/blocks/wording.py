"""How a block is written in a prompt. Pure."""

HEADING = "## Core memory"


def word_block(label: str, text: str) -> str:
    """Return a block with its label, which the tool needs."""
    return f"### {label}\n\n{text}"
