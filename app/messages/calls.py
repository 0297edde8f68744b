"""Pairs tool calls with their results in the messages of a line, without their texts. Pure."""

from collections.abc import Iterable, Sequence

from app.chats.head import Sent


def pair_calls(sent: Iterable[Sent]) -> list[tuple[int, int]]:
    """Return the seqs of each tool call and its result.

    Models reuse the ids of calls. So a result belongs to the latest earlier call with the same id. If that call already
    has a result, the later result is in no pair.
    """
    called: dict[str, int] = {}
    pairs = []
    for one in sent:
        if one.answers in called:
            pairs.append((called.pop(one.answers), one.seq))
        called.update(dict.fromkeys(one.calls, one.seq))
    return pairs


def drop_unsent(sent: Sequence[Sent]) -> list[Sent]:
    """Return `sent`, except messages that only make tool calls and have no result of these calls in `sent`.

    Contexts leave out such messages, because providers refuse calls without results.
    """
    answered = {call for call, _ in pair_calls(sent)} if any(one.only_calls for one in sent) else ()
    return [one for one in sent if not one.only_calls or one.seq in answered]
