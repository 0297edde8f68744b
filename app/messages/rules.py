"""SQL conditions on the columns of `messages`, for all queries that read messages. Pure.

A query that joins `messages` with another table puts the alias before the columns with `qualify`.
"""

import re

IS_NOT_DELETED = "deleted_at IS NULL"


IS_NOT_HIDDEN_BY_USER = "hidden_by IS DISTINCT FROM 'user'"
"""The messages that a person did not hide."""


IS_HIDDEN_BY_SCENES = "hidden_by = 'scenes'"
"""The messages that auto-hide has hidden."""


IS_OF_STORY = "role IN ('user', 'assistant', 'narrator')"
"""The messages of the roles of the story; searches and the word frequencies of memos use only these."""


HAS_TURN_ROLE = "(role = 'user' OR (role = 'assistant' AND kind IS NULL))"
"""Messages of the user and of characters, without thoughts. Deleted messages are included; `SPEAKS` excludes them."""


SPEAKS = f"{IS_NOT_DELETED} AND {HAS_TURN_ROLE}"
"""The messages from which turns are counted. `count_appended` has the same rule."""


IS_SENT = f"{IS_NOT_DELETED} AND hidden_by IS NULL AND NOT blank AND kind IS NULL"
"""The messages that are sent if they are at or after the anchor. `eligibility.is_sent` has the same rule.

A message that only makes tool calls is sent only if one of these calls has a result (`calls.drop_unsent`).
"""


IS_SENT_OR_SCENE_HIDDEN = f"{IS_NOT_DELETED} AND {IS_NOT_HIDDEN_BY_USER} AND NOT blank AND kind IS NULL"
"""Messages that are sent, or would be if scenes did not hide them."""


_ELIGIBLE = f"""
    {IS_NOT_DELETED} AND NOT excluded AND kind IS NULL AND {IS_NOT_HIDDEN_BY_USER} AND NOT blank
    AND tokens >= greatest(({{filters}} ->> 'min_tokens')::int, 1)
    AND CASE role
        WHEN 'user' THEN coalesce(({{filters}} ->> 'include_user')::boolean, true)
        WHEN 'system' THEN coalesce(({{filters}} ->> 'include_system')::boolean, false)
        WHEN 'narrator' THEN coalesce(({{filters}} ->> 'include_narrator')::boolean, true)
        WHEN 'assistant' THEN NOT coalesce({{filters}} -> 'disabled' ? name, false)
        ELSE false END"""


_COLUMN = re.compile(r"\b(?:deleted_at|hidden_by|role|kind|name|tokens|blank|excluded)\b")


def qualify(rule: str, alias: str) -> str:
    """Return a rule of this module with the alias of `messages` before each column: `m.deleted_at IS NULL`."""
    return _COLUMN.sub(rf"{alias}.\g<0>", rule)


def write_is_eligible(alias: str, filters: str) -> str:
    """Return the condition that a message is summarised; `eligibility.is_eligible` has the same rule.

    Args:
        alias: The alias of `messages`.
        filters: An SQL expression, such as `b.filters`, for the filters as JSON (`Filters.to_json`).

    """
    return qualify(_ELIGIBLE, alias).format(filters=filters)
