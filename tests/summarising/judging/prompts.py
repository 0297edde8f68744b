"""The prompts whose answers are judged as texts."""

from app.commands.prompts import PROMPTS

LEFT_OUT = {
    "scene_break": "its answer is the number of a message",
    "consolidation": "its answer is a list of facts and memories, each of which is accepted or dropped",
}
"""The other prompts, each with the reason."""

JUDGED = {prompt.name: prompt for prompt in PROMPTS if prompt.name not in LEFT_OUT}
"""By name, in the order of their layers."""
