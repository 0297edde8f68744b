"""Chooses the swipe of a message that a re-import selects, and the swipes that it adds. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class SwipeChoice(NamedTuple):
    """The index of the swipe to select, and the swipes to add before that, as (index, text)."""

    selected: int
    added: Sequence[tuple[int, str]] = ()


def choose_swipe(
    known: Mapping[int, str], selected: int, content: str, given: Sequence[str], given_index: int
) -> SwipeChoice:
    """Return the swipe that is to have the text `content`; if it has another text now, the caller edits it.

    `known` are all stored texts of the message by index; `selected` is the index of the selected one. `given` are the
    texts of the request, if any, with `content` at `given_index`.

    If `content` is a known text, its swipe is selected. If `content` is new and the stored swipe at `given_index` is
    not among the given texts, that swipe was edited. Every other new text is added as a swipe. If no texts are given
    and `content` is new, the selected swipe was edited.
    """
    texts = set(known.values())
    if content in texts:
        preferred = [*([given_index] if given else []), selected, *sorted(known)]
        index = next(at for at in preferred if known.get(at) == content)
        is_edited = False
    else:
        edited = given_index if given else selected
        is_edited = edited in known and known[edited] not in given
        index = edited
    fresh = [text for text in dict.fromkeys(given) if text not in texts and not (is_edited and text == content)]
    added = list(enumerate(fresh, start=max(known) + 1))
    if content not in texts and not is_edited:
        index = next(at for at, text in added if text == content)
    return SwipeChoice(index, added)
