"""A model's answer, read as a summary. Pure."""

from app.summarising.former import leaves_former
from app.summarising.prose import read_prose, tells_nothing, tells_only_nothing
from app.summarising.reading import UnusableAnswer


def parse_summary(answer: str, *, former: str) -> str:
    """The new summary; empty where `former` is and the model says that there is nothing to tell.

    `former` itself where the model only says that it stays as it is. Raises UnusableAnswer, also where "nothing" would
    wipe out a former summary.
    """
    text = read_prose(answer)
    if leaves_former(text, former):
        return former
    # What only begins with "nothing" may tell something, but not what a former summary did.
    if former.strip() and tells_nothing(text):
        raise UnusableAnswer("the answer is empty, which the former summary is not")
    return "" if tells_only_nothing(text) else text
