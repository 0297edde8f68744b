"""The SQL that finds the messages of a line which may have a word, or have a similar meaning."""

from app.kit.owners import CHAT_WIDE
from app.kit.planner import NOT_BY_INDEX, ONE_LOOKUP_EACH
from app.passages.keys import HASH, SHARE
from app.passages.progress import NAME

MOST_WITH_KEY = 1_000
"""How many messages with a key are considered, those that were put into the index last.

A key that more messages have says little about what is searched.
"""

MOST_IN_INDEX = 500
"""How many messages of a line that the index has found are read: those with the most and the rarest keys."""

# The cursor of `progress.py`. That of a fork has the key of the chat that it was copied from.
_PROGRESS = f"""
    SELECT coalesce((i.cursor ->> 'seq')::int, 0) AS seq,
        ARRAY(SELECT jsonb_array_elements_text(i.cursor -> 'changed')::int) AS changed
    FROM (SELECT CASE WHEN c.cursors -> '{NAME}' ->> 'chat' = c.chat_key::text
        THEN c.cursors -> '{NAME}' END AS cursor) AS i {ONE_LOOKUP_EACH}"""  # noqa: S608 - of constants

_NOT_IN_INDEX = f"""
        SELECT m.*, NULL::float8 AS likelihood FROM (
            SELECT * FROM messages
            WHERE chat_key = c.chat_key AND line_id = c.line_id
                AND seq > greatest(i.seq, c.head_seq - {{most}}) AND {{where}}
            ORDER BY seq {ONE_LOOKUP_EACH}) AS m"""  # noqa: S608

_CHANGED = f"""
        SELECT m.*, NULL::float8 FROM unnest(i.changed) AS changed (seq) CROSS JOIN LATERAL (
            SELECT * FROM messages
            WHERE chat_key = c.chat_key AND line_id = c.line_id AND seq = changed.seq AND {{where}}
            ORDER BY seq {ONE_LOOKUP_EACH}) AS m"""  # noqa: S608

# Each key is looked up for itself, so its rarity in the chat is known before any message is read. Its rows come in the
# order in which they are stored, so the last ones are the newest. The rarities of a message's keys are added up.
_IN_INDEX = f"""
        SELECT m.*, p.likelihood FROM (
            SELECT found.message_id, found.digest, sum(found.rarity) AS likelihood FROM (
                SELECT p.message_id, p.digest, p.number,
                    wanted.share * ln(1 + c.message_count::float8 / p.messages_with) AS rarity
                FROM (
                    SELECT {HASH.format(chat_key="c.chat_key", key="k.key")} AS key, max({SHARE}) AS share
                    FROM unnest({{keys}}::text[]) AS k (key) GROUP BY 1 {ONE_LOOKUP_EACH}) AS wanted
                CROSS JOIN LATERAL (
                    SELECT p.message_id, p.digest, row_number() OVER () AS number, count(*) OVER () AS messages_with
                    FROM passages p
                    WHERE (p.chat_key = c.chat_key) {NOT_BY_INDEX} AND p.keys @> ARRAY[wanted.key]) AS p
                WHERE p.number > p.messages_with - {MOST_WITH_KEY}) AS found
            GROUP BY found.message_id, found.digest
            ORDER BY likelihood DESC, max(found.number) DESC LIMIT {{most_in_index}}) AS p
        CROSS JOIN LATERAL (
            SELECT * FROM messages
            WHERE chat_key = c.chat_key AND message_id = p.message_id AND line_id = c.line_id AND {{where}}
            {ONE_LOOKUP_EACH}) AS m
        WHERE m.digest = p.digest AND m.seq <= i.seq AND m.seq <> ALL (i.changed)"""  # noqa: S608


def write_messages(keys: str, where: str, most: int, most_in_index: int = MOST_IN_INDEX) -> str:
    """Return a query on the line's row `c` for its messages that have one of some keys, or are not in the index.

    Its columns are those of `messages`, and `likelihood`: the sum of the rarities of the keys that a message has, or
    NULL if it is not in the index. The rarity of a key is ln(1 + messages of the line / messages with the key), times
    `keys.SHARE`.

    Args:
        keys: The parameter with the keys, such as `$8`; they are made by `list_wanted`.
        where: A condition on the columns of `messages`.
        most: How many of the newest messages that are not in the index are read at most.
        most_in_index: How many messages that the index has found are read at most, those with the most and the rarest
            keys.

    """
    given = {"keys": keys, "where": where, "most": most, "most_in_index": most_in_index}
    found = "\n        UNION ALL".join(part.format(**given) for part in (_NOT_IN_INDEX, _CHANGED, _IN_INDEX))
    return f"SELECT m.* FROM ({_PROGRESS}) AS i CROSS JOIN LATERAL ({found}) AS m"  # noqa: S608


MOST_NEAREST = 300
"""How many vectors are looked up at most, the nearest ones."""

NEAREST_COLUMNS = "chat_key, message_id, digest, similarity, lowest"

_MODEL = """(SELECT model_id FROM embedding_models
                WHERE name = {model} AND dimension = vector_dims({vector}::text::halfvec))"""

_NEAREST = f"""
    SELECT v.chat_key, v.message_id, v.digest, v.similarity, min(v.similarity) OVER () AS lowest FROM (
        SELECT DISTINCT c.chat_key FROM chats c WHERE {{which}}
    ) AS searched CROSS JOIN LATERAL (
        SELECT chat_key, message_id, digest,
            -(vector <#> (SELECT {{vector}}::text::halfvec))::float8 AS similarity
        FROM vectors
        WHERE chat_key = searched.chat_key AND line_id = '{CHAT_WIDE}'
            AND model_id = {_MODEL}
        ORDER BY chat_key, line_id, model_id {ONE_LOOKUP_EACH}) AS v
    ORDER BY v.similarity DESC LIMIT {MOST_NEAREST}"""  # noqa: S608

_SIMILARITY = f"""
    SELECT max(-(v.vector <#> (SELECT {{vector}}::text::halfvec)))::float8 AS similarity FROM vectors v
    WHERE {{text}}.similarity IS NULL AND v.chat_key = {{text}}.chat_key AND v.line_id = '{CHAT_WIDE}'
        AND v.model_id = {_MODEL} AND v.message_id = substr({{text}}.source, length('message:') + 1)
        AND v.digest = {{text}}.digest {ONE_LOOKUP_EACH}"""  # noqa: S608

_NEAR = f"""
    SELECT m.*, NULL::float8 AS likelihood, nearest.similarity FROM nearest CROSS JOIN LATERAL (
        SELECT * FROM messages
        WHERE chat_key = c.chat_key AND message_id = nearest.message_id AND line_id = c.line_id AND {{where}}
        {ONE_LOOKUP_EACH}) AS m
    WHERE nearest.chat_key = c.chat_key AND m.digest = nearest.digest"""  # noqa: S608


def write_nearest(which: str, vector: str, model: str) -> str:
    """Return the query of the vectors that are nearest to one; its columns are NEAREST_COLUMNS.

    All vectors of the chats are compared. `similarity` is the cosine, `lowest` the lowest one of all. A text of several
    parts can occur several times.

    Args:
        which: A condition on rows `c` of `chats`: the chats that are searched.
        vector: The parameter with the vector, as text.
        model: The parameter with the name of its model.

    """
    return _NEAREST.format(which=which, vector=vector, model=model)


def write_near_messages(where: str) -> str:
    """Return a query on the line's row `c` for its messages that the query `nearest` has found.

    Its columns are those of `messages`, `likelihood` (NULL) and `similarity`. `where` is a condition on the columns of
    `messages`.
    """
    return _NEAR.format(where=where)


def write_similarity(text: str, vector: str, model: str) -> str:
    """Return the query of the similarity of a found text, if it is a message whose similarity is not known yet.

    `text` is the alias of the row, with the columns `source`, `chat_key`, `digest` and `similarity`; the parameters are
    those of `write_nearest`.
    """
    return _SIMILARITY.format(text=text, vector=vector, model=model)
