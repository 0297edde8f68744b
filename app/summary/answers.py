"""A model's answer, read as a summary. Pure."""

from app.summarising.former import is_remnant, leaves_former
from app.summarising.prose import read_prose, tells_nothing, tells_only_nothing
from app.summarising.reading import UnusableAnswer


def parse_summary(answer: str, *, former: str, wished: bool = False) -> str:
    """The new summary; empty where `former` is and the model says that there is nothing to tell.

    `former` itself where the model only says that it stays as it is. Raises UnusableAnswer, also where "nothing" or a
    remark would wipe out a former summary, unless a person `wished` for something, as for fewer words.
    """
    text = read_prose(answer)
    if leaves_former(text, former):
        return former
    # What only begins with "nothing" may tell something, but not what a former summary did.
    if former.strip() and tells_nothing(text):
        raise UnusableAnswer("the answer is empty, which the former summary is not")
    if not wished and is_remnant(text, former):
        raise UnusableAnswer("the answer tells next to nothing of the former summary")
    return "" if tells_only_nothing(text) else text
