"""Conditions that rows of the dump have to meet, so that it covers what an upgrade must keep."""

import asyncpg

from tests.upgrade.dump import list_tables

CONTENTS: tuple[tuple[str, str], ...] = (
    *(("chats", f"standing = '{standing}'") for standing in ("current", "abandoned", "checkpoint")),
    *(("chats", f"last_cut ->> 'reason' = '{reason}'") for reason in ("full", "cold", "forced", "rewind")),
    *(
        ("chats", f"settings ->> 'preset' = '{preset}'")
        for preset in ("memo", "diary", "scenes", "agent", "decay", "companion")
    ),
    ("chats", "cut_waits"),
    ("chats", "parent_line_id IS NOT NULL"),
    ("chats", "user_id = 'jonas'"),
    ("chats", "user_id = 'mira'"),
    ("chats", "metadata <> '{}'"),
    ("chats", "time_zone = 'Asia/Tokyo'"),
    ("chats", "characters @> '[{\"disabled\": true}]'"),
    ("chats", "settings ? 'history' AND settings ? 'memos'"),
    ("messages", "excluded"),
    ("messages", "pinned"),
    ("messages", "hidden_by = 'user'"),
    ("messages", "hidden_by = 'scenes'"),
    ("messages", "kept_shown"),
    ("messages", "deleted_at IS NOT NULL"),
    ("messages", "edited_at IS NOT NULL"),
    ("messages", "selected_swipe > 0"),
    ("messages", "tool_calls IS NOT NULL"),
    ("messages", "tool_call_id IS NOT NULL"),
    ("messages", "kind = 'thought'"),
    ("messages", "importance IS NOT NULL"),
    ("messages", "metadata IS NOT NULL"),
    ("messages", "blank"),
    *(("messages", f"role = '{role}'") for role in ("user", "assistant", "system", "tool", "narrator")),
    *(("memos", f"origin = '{origin}'") for origin in ("model", "extractive", "person")),
    *(("memos", f"status = '{status}'") for status in ("pending", "ready", "empty")),
    ("memos", "status = 'ready' AND source_hash <> current_hash"),
    ("memos", "edited"),
    ("memos", "pinned"),
    ("memos", "deleted_at IS NOT NULL"),
    ("memos", "attempts > 1"),
    *(
        ("narrative_versions", f"layer = '{layer}' AND origin = '{origin}'")
        for layer in ("summary", "recap")
        for origin in ("model", "extractive", "person")
    ),
    ("narrative_versions", "layer = 'diary' AND origin = 'model'"),
    ("narrative_versions", "layer = 'recap' AND deleted_at IS NOT NULL"),
    ("narrative_versions", "current AND source_hash <> current_hash"),
    *(("diary_entries", f"origin = '{origin}'") for origin in ("character", "person", "service")),
    ("diary_entries", "edited"),
    ("diary_entries", "deleted_at IS NOT NULL"),
    ("diary_entries", "source_hash <> current_hash"),
    *(("scenes", f"closed_by = '{by}'") for by in ("person", "model", "time", "cut")),
    *(("scenes", f"origin = '{origin}'") for origin in ("model", "extractive", "person")),
    ("scenes", "status = 'ready' AND source_hash <> current_hash"),
    ("scenes", "lifted_at IS NOT NULL"),
    ("scenes", "truncated"),
    ("scenes", "edited"),
    ("scenes", "titled"),
    *(("work", f"layer = '{layer}'") for layer in ("memos", "summary", "diary", "scenes")),
    ("work", "payload IS NOT NULL"),
    ("work", "run_after = 'infinity'"),
    ("work", "failed_at IS NULL AND attempts > 0 AND error IS NOT NULL"),
    ("work", "failed_at IS NOT NULL AND transient"),
    ("work", "failed_at IS NOT NULL AND NOT transient"),
    ("work", "failed_at IS NOT NULL AND run_after = 'infinity'"),
    ("work", "lease IS NOT NULL"),
    ("keys", "from_environment"),
    ("keys", "revoked_at IS NOT NULL"),
    ("model_usage", "failures > 0"),
)


async def list_missing(connection: asyncpg.Connection) -> list[str]:
    """Return the tables without a row, and the conditions that no row meets."""
    every = [(table, "true") for table in await list_tables(connection)]
    return [
        f"{table}: {condition}"
        for table, condition in (*every, *CONTENTS)
        if not await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table} WHERE {condition})")
    ]
