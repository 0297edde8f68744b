"""The errors of core blocks."""

from app.kit.errors import Conflict, NotFound


class BlockNotFound(NotFound):
    """There is no such block, or nothing was written into it yet."""

    code = "block_not_found"
    title = "Unknown block"


class PatternNotFound(Conflict):
    """The text of the block does not contain what is to be replaced."""

    code = "pattern_not_found"
    title = "Pattern not found"


class BlockTooLong(Conflict):
    """With the operation, the block would exceed its maximum length."""

    code = "block_too_long"
    title = "Block too long"
