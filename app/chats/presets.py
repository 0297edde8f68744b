"""The presets: sets of default values. Pure.

Each contains the values that replace the defaults of the schema; `app.chats.settings` merges them.
"""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "memo": {},
    "diary": {
        "history": {"keep_messages": 15, "grow_messages": 5, "edges": "folds"},
        "memos": {"enabled": False},
        "summary": {"enabled": True},
        "diary": {"enabled": True},
        "timestamps": "inline",
    },
    "scenes": {
        "history": {"keep_messages": 16, "grow_messages": 0, "max_messages": 200, "edges": "scenes"},
        "memos": {"enabled": False},
        "scenes": {"enabled": True},
    },
    "agent": {
        "history": {"edges": "every_8"},
        "memos": {"enabled": False},
        "consolidation": {"enabled": True, "every_turns": 1},
        "recall": {"mode": "auto"},
    },
    "decay": {
        "history": {"keep_messages": 20, "grow_messages": 10, "edges": "every_message"},
        "memos": {"enabled": False},
        "consolidation": {"enabled": True, "every_turns": 5},
        "memories": {"forget_below": 0.05},
        "recall": {"mode": "auto"},
    },
    "companion": {
        "diary": {"enabled": True},
        "consolidation": {"enabled": True, "every_turns": 5},
        "recall": {"mode": "tool"},
        "timestamps": "inline",
    },
}

PRESET_TEXTS: dict[str, str] = {
    "memo": "A memo of 2–3 highlights for every 8 messages; the last 15 memos are in the prompt.",
    "diary": "A rolling summary of the conversation, and a diary in the character's own voice.",
    "scenes": "Scenes with recaps and a running recap of all of them; old scenes are hidden.",
    "agent": "Facts and memories, learnt every turn and recalled when the conversation returns to them.",
    "decay": "A short verbatim history. Important content becomes memories that fade: they are recalled when the "
    "conversation returns to them, later only for a `query`, and at last they are in the archive.",
    "companion": "Memos and a diary together, and facts and memories, learnt every five turns.",
}
