"""Fragments of SQL that make PostgreSQL's planner choose a certain plan. Pure.

PostgreSQL has no statistics of a line that was just created. The planner then assumes a single row: it may read the
whole line for each key that is looked up, or choose any index that begins with the same columns.

An UPDATE of many rows finds each row in a lateral subquery that returns `ctid AS row_ref`, and joins by this `row_ref`.
The target of an UPDATE cannot itself be in a lateral subquery; joined by its key, the whole line would be read. The
line is locked, so the `ctid` of a row does not change meanwhile.
"""

ONE_LOOKUP_EACH = "OFFSET 0"
"""The end of a lateral subquery: with an OFFSET the planner cannot merge it with the outer query, so it looks up each
outer row by the key. A subquery on a range of keys also has an ORDER BY with the key, which decides between indexes
that begin with the same columns, as long as these have equally many levels: a level costs more than the sort of a row.
So `uq_messages_id` has a condition, and cannot be used instead of the primary key."""


def is_equal(column: str, value: str) -> str:
    """Return `column = value`, written as a range of one value.

    After `=` the planner drops the column from the ORDER BY, as it is constant, and may choose an index without it.
    """
    return f"{column} BETWEEN {value} AND {value}"


WITH_HASH_TABLE = "IS TRUE"
"""After `(x IN (SELECT …))`: the list is put into a hash table, and not compared with each row in a nested loop."""


NOT_BY_INDEX = "IS TRUE"
"""After `(column = value)`: the planner does not look up rows by an index on this column."""
