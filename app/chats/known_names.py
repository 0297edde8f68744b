"""SQL for the names under which the user's chats know a character. Pure.

Each chat has its own list of characters, so a rename in one chat does not change the character's name in the others.
In the data that the chats of a user share, characters of two chats count as the same one if they have a present or a
former name in common. So the names of a character are those in its chat and those in the other chats.
"""

HAS_FORMER_NAMES = "jsonb_path_exists({}characters, '$[*].aliases[*]')"
"""SQL for whether a line has a character with a former name; the index `ix_chats_renamed` has this condition, too."""


def _write_own(character: str) -> str:
    """Return the query of the present and the former names of a character; `character` is SQL for it, as JSON."""
    return f"""
        SELECT {character} ->> 'name' UNION SELECT jsonb_array_elements_text({character} -> 'aliases')"""


def _write_has(character: str, name: str) -> str:
    """Return the condition that a character has a name; both arguments are SQL."""
    return f"({character} ->> 'name' = {name} OR {character} -> 'aliases' ? {name})"


def write_known_names(others: str) -> str:
    """Return a subquery for the names of the character `p.value`, in one column; `c` is the row of its chat.

    `others` is an SQL condition on a row `o` of `chats`. It selects the current lines of the user's other chats whose
    names are to be considered. Of these lines, only those that have a character with a former name are read, because a
    character without one adds no name. A name that another character of `c` has is left out, because in `c` the name
    means that character.
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
