"""SQL for the names under which the user's chats know a character. Pure.

Chats have lists of characters of their own, so a rename in one chat leaves the character's name in the others. For what
the chats of a user share, the characters of two chats are the same if they have a name in common, be it the present or
a former one. So the names of a character are its own, and those that it has in the other chats.
"""

HAS_FORMER_NAMES = "jsonb_path_exists({}characters, '$[*].aliases[*]')"
"""Whether a line has a character with a former name: with `line_status`, the condition of `ix_chats_renamed`."""


def _write_own(character: str) -> str:
    """Return the query of the present and the former names of a character; `character` is SQL for it, as JSON."""
    return f"""
        SELECT {character} ->> 'name' UNION SELECT jsonb_array_elements_text({character} -> 'aliases')"""


def _write_has(character: str, name: str) -> str:
    """Return the condition that a character has a name; both arguments are SQL."""
    return f"({character} ->> 'name' = {name} OR {character} -> 'aliases' ? {name})"


def write_known_names(others: str) -> str:
    """Return a subquery of the names of the character `p.value` of the chat's row `c`, in one column.

    `others` is SQL for the condition that the row `o` of `chats` is the current line of one of the user's other chats
    whose names count. Of these lines, only those that have a character with a former name are read, because a character
    without one adds no name. A name that another character of `c` has is left out: in `c` it means that one.
    """
    return f"""(
        WITH RECURSIVE known (name) AS (
            ({_write_own("p.value")})
            UNION
            SELECT theirs.name FROM known
                JOIN chats o ON {others} AND {HAS_FORMER_NAMES.format("o.")}
                CROSS JOIN jsonb_array_elements(o.characters) AS k
                CROSS JOIN LATERAL ({_write_own("k.value")}) AS theirs (name)
            WHERE {_write_has("k.value", "known.name")} AND NOT EXISTS (
                SELECT FROM jsonb_array_elements(c.characters) AS x
                WHERE x.value <> p.value AND {_write_has("x.value", "theirs.name")})
        )
        SELECT known.name FROM known)"""  # noqa: S608 - composed of constants
