"""SQL of core blocks in contexts."""

from app.knowledge.liveness import OWNERS_OF_CHAT, write_is_live, write_json, write_log

LOG_OF_LINE = write_json(
    write_log(OWNERS_OF_CHAT, write_is_live(chat="c.chat_key", line="c.line_id", before="b.seq"), "block"),
    with_operations=True,
)
"""A scalar subquery of the live operations on the blocks, in each scope that the line sees; NULL if there are none."""
