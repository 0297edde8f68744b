"""SQL of facts in contexts and documents."""

from app.knowledge.liveness import OWNERS_OF_CHAT, write_is_live, write_json, write_newest

_NEWEST = write_newest(
    OWNERS_OF_CHAT,
    write_is_live(chat="c.chat_key", line="c.line_id", before="b.seq"),
    "fact",
)

_NEWEST_NOW = write_newest(
    OWNERS_OF_CHAT, write_is_live(chat="c.chat_key", line="c.line_id", before="NULL::int"), "fact"
)

_SOLE_CHARACTER = """(
    SELECT min(p.value ->> 'name') FROM jsonb_array_elements(c.characters) AS p
    WHERE coalesce(p.value ->> 'disabled', 'false') <> 'true' HAVING count(*) = 1)"""

NEWEST_OF_LINE = write_json(_NEWEST)
"""A scalar subquery of the newest live fact of each key, in each scope that the line sees; NULL if there is none."""


DOCUMENTS = f"""
    SELECT 'fact:' || f.statement_id, f.key || ': ' || f.content, 0, 0 FROM (
        SELECT DISTINCT ON (n.key) n.* FROM ({_NEWEST_NOW}) AS n
        WHERE n.current_name IS NULL OR n.current_name = {_SOLE_CHARACTER}
        ORDER BY n.key, n.rank, n.learnt_at DESC, n.statement_id DESC) AS f
    WHERE f.content IS NOT NULL"""  # noqa: S608 - constants only
