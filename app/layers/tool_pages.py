"""Divides a long answer of a tool into pages, so that one call cannot fill the model's context. Pure."""

from collections.abc import Callable, Sequence

MAX_PAGE_TOKENS = 4_000
"""The maximum number of tokens of a page. A longer line is a page of its own."""

_NOTE_TOKENS = 40
"""Room for the last line, which says how to read on."""


def word_page(
    heading: str | None, lines: Sequence[str], page: int, *, again: str, count_tokens: Callable[[str], int]
) -> str:
    """Return a page of `lines` under the heading, with a last line that says how many lines follow, if some do.

    Args:
        heading: The first line of each page; None for none.
        lines: The lines of all pages.
        page: The number of the page, from 1.
        again: The words between "call" and the number of the page in the note, such as "`get_facts` with page".
        count_tokens: Returns the tokens of a text.

    """
    heads = [heading] if heading else []
    room_tokens = MAX_PAGE_TOKENS - _NOTE_TOKENS - sum(count_tokens(head) + 1 for head in heads)
    pages = _divide(lines, room_tokens, count_tokens)
    if page > len(pages):
        return f"There is no page {page}; the last one is {len(pages)}."
    left = sum(map(len, pages[page:]))
    notes = [f"{left:,} more. To read on, call {again} {page + 1}."] if left else []
    return "\n".join([*heads, *pages[page - 1], *notes])


def _divide(lines: Sequence[str], room_tokens: int, count_tokens: Callable[[str], int]) -> list[list[str]]:
    pages: list[list[str]] = []
    left_tokens = 0
    for line in lines:
        tokens = count_tokens(line) + 1  # with the line break
        if not pages or tokens > left_tokens:
            pages.append([])
            left_tokens = room_tokens
        pages[-1].append(line)
        left_tokens -= tokens
    return pages
