"""A chat whose context has a segment for the system prompt, the character and the user."""

from tests.talk import Json

CHAT: Json = {
    "characters": [{"name": "Kai", "persona": "A lighthouse keeper."}],
    "user_persona": "Mira, a cartographer.",
    "system_prompt": "You are Kai.",
}

LORE = {"name": "lore", "text": "The lighthouse has 112 steps."}
"""A segment of a caller."""
