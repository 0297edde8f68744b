"""Fragments of SQL that make PostgreSQL's planner choose a certain plan. Pure.

PostgreSQL has no statistics of a line that was just created. The planner then assumes a single row: it may read the
whole line for each key that is looked up, or choose any of the indexes that begin with the same columns.

So an UPDATE of many rows finds each row in a lateral subquery that returns `ctid AS row_ref`, and joins its target
(the table that it changes) on `row_ref`. The UPDATE names the table twice, because its target cannot itself be in a
lateral subquery. If the target were joined on its key, the whole line could be read for each row. The line is locked,
so the `ctid` of a row does not change meanwhile.
"""

ONE_LOOKUP_EACH = "OFFSET 0"
"""The end of a lateral subquery: with an OFFSET the planner cannot merge it with the outer query, so it looks up the
key once for each outer row. A subquery for which several indexes begin with the same columns also needs an ORDER BY
with the key: the planner then chooses the one that is sorted by the key, to save a sort. There is one exception: if the
B-tree of another index has fewer levels, the planner may choose that index, because it expects a single row, and
sorting one row costs less than reading a further level. To rule this out for ranges of seq, the index `uq_messages_id`
of the table `messages` has a condition (it is a partial index): the planner uses such an index only if the query
implies the condition, and a range of seq does not."""


COMPUTED_ONCE = "OFFSET 0"
"""The end of a subquery whose columns are used in several places: with an OFFSET the planner cannot merge it with the
outer query. Without the OFFSET, the planner could copy the expression of a column to each of these places, and compute
it there: if the place is a condition on messages, once for each message."""


PROBES_ONLY = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off"
"""Statements for a transaction that runs only short queries. Until the transaction ends, the planner avoids scans and
sorts, and chooses index probes in index order. The queries read the work queue, whose statistics are often out of date:
it is empty now and holds 100,000 items a moment later, and a plan made for few rows stays in use."""


def is_equal(column: str, value: str) -> str:
    """Return `column = value`, written as a range of one value.

    After `=` the planner drops the column from the ORDER BY, because the column is constant. It may then choose an
    index without the column.
    """
    return f"{column} BETWEEN {value} AND {value}"


WITH_HASH_TABLE = "IS TRUE"
"""Appended to `(x IN (SELECT …))`: the results of the SELECT are then put into a hash table, and not compared with each
row in a nested loop."""


NOT_BY_INDEX = "IS TRUE"
"""Appended to `(column = value)` or `(column IS NOT NULL)`: the planner then does not look up rows by an index on this
column, or by one that has only the rows with such a value."""
