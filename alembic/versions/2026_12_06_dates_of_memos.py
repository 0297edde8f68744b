"""Dates of memos: each memo in the cached memo windows begins with the date of its messages."""

from collections.abc import Sequence

from alembic import op

revision: str = "d5e82a61c904"
down_revision: str | Sequence[str] | None = "d7e20b95c3a1"
branch_labels = None
depends_on = None

# The tokens that o200k has for a line such as `[05/28]`, for its end with another day, and for a year in front.
_DAY_TOKENS, _SECOND_DAY_TOKENS, _YEAR_TOKENS = 5, 4, 3

_ELIGIBLE = """
    m.deleted_at IS NULL AND NOT m.excluded AND m.kind IS NULL AND m.hidden_by IS DISTINCT FROM 'user' AND NOT m.blank
    AND m.tokens >= greatest((b.filters ->> 'min_tokens')::int, 1)
    AND CASE m.role
        WHEN 'user' THEN coalesce((b.filters ->> 'include_user')::boolean, true)
        WHEN 'system' THEN coalesce((b.filters ->> 'include_system')::boolean, false)
        WHEN 'narrator' THEN coalesce((b.filters ->> 'include_narrator')::boolean, true)
        WHEN 'assistant' THEN NOT coalesce(b.filters -> 'disabled' ? m.name, false)
        ELSE false END"""

_DATED = f"""
    SELECT jsonb_agg(CASE WHEN words.line IS NULL THEN e.memo ELSE e.memo || jsonb_build_object(
        'text', words.line || chr(10) || (e.memo ->> 'text'), 'tokens', (e.memo ->> 'tokens')::int + words.tokens
    ) END ORDER BY e.nth)
    FROM jsonb_array_elements(c.context_cache -> 'memos' -> '{{part}}') WITH ORDINALITY AS e (memo, nth)
    LEFT JOIN LATERAL (
        SELECT min(m.sent_at) AT TIME ZONE zone.name AS first_at, max(m.sent_at) AT TIME ZONE zone.name AS last_at
        FROM memos b JOIN messages m ON m.chat_key = b.chat_key AND m.line_id = b.line_id
            AND m.seq BETWEEN b.first_seq AND b.last_seq
        WHERE b.chat_key = c.chat_key AND b.line_id = c.line_id AND b.memo_id = (e.memo ->> 'id')::uuid AND {_ELIGIBLE}
    ) AS sent ON true
    LEFT JOIN LATERAL (
        SELECT to_char(sent.first_at, CASE WHEN first_has_year THEN 'YYYY/MM/DD' ELSE 'MM/DD' END) AS first_day,
            to_char(sent.last_at, CASE WHEN last_has_year THEN 'YYYY/MM/DD' ELSE 'MM/DD' END) AS last_day,
            first_has_year::int AS first_years, last_has_year::int AS last_years
        FROM (SELECT extract(year FROM sent.first_at) IS DISTINCT FROM anchor.year AS first_has_year,
            extract(year FROM sent.last_at) IS DISTINCT FROM anchor.year AS last_has_year) AS years
    ) AS days ON true
    LEFT JOIN LATERAL (
        SELECT '[' || first_day || CASE WHEN first_day = last_day THEN '' ELSE '–' || last_day END || ']' AS line,
            {_DAY_TOKENS} + {_YEAR_TOKENS} * first_years + CASE WHEN first_day = last_day THEN 0
                ELSE {_SECOND_DAY_TOKENS} + {_YEAR_TOKENS} * last_years END AS tokens
    ) AS words ON true"""  # noqa: S608 - constants only

_DATE = f"""
    UPDATE chats SET context_cache = jsonb_set(chats.context_cache, '{{{{memos,{{part}}}}}}', ({_DATED}))
    FROM chats c
    LEFT JOIN pg_timezone_names known ON known.name = c.time_zone
    CROSS JOIN LATERAL (SELECT coalesce(known.name, 'UTC') AS name) AS zone
    CROSS JOIN LATERAL (
        SELECT (
            SELECT extract(year FROM a.sent_at AT TIME ZONE zone.name) FROM messages a
            WHERE a.chat_key = c.chat_key AND a.line_id = c.line_id AND a.seq >= c.anchor_seq ORDER BY a.seq LIMIT 1
        ) AS year
    ) AS anchor
    WHERE c.chat_key = chats.chat_key AND c.line_id = chats.line_id
        AND jsonb_path_exists(c.context_cache, '$.memos.{{part}}[0]')"""  # noqa: S608 - constants only

_UNDATE = """
    UPDATE chats c SET context_cache = jsonb_set(c.context_cache, '{{memos,{part}}}', (
        SELECT jsonb_agg(CASE WHEN b.memo_id IS NULL THEN e.memo
            ELSE e.memo || jsonb_build_object('text', b.text, 'tokens', b.tokens) END ORDER BY e.nth)
        FROM jsonb_array_elements(c.context_cache -> 'memos' -> '{part}') WITH ORDINALITY AS e (memo, nth)
        LEFT JOIN memos b ON b.chat_key = c.chat_key AND b.line_id = c.line_id AND b.memo_id = (e.memo ->> 'id')::uuid
    ))
    WHERE jsonb_path_exists(c.context_cache, '$.memos.{part}[0]')"""


def upgrade() -> None:
    for part in ("memos", "pinned"):
        op.execute(_DATE.format(part=part))


def downgrade() -> None:
    for part in ("memos", "pinned"):
        op.execute(_UNDATE.format(part=part))
