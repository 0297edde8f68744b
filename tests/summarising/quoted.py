"""Read the passages that a prompt quotes between tags."""

import json
from typing import Any


def quoted_in(user: str, tag: str) -> list[object]:
    """Return the JSON values between two tags, one a line. The tags must occur exactly once."""
    lines = user.splitlines()
    assert lines.count(f"<{tag}>") == lines.count(f"</{tag}>") == 1
    return [json.loads(line) for line in lines[lines.index(f"<{tag}>") + 1 : lines.index(f"</{tag}>")]]


def messages_in(request: str) -> list[dict[str, Any]]:
    """Return the fields of each message that a request quotes."""
    found = quoted_in(request, "messages")
    return [line for line in found if isinstance(line, dict)]
