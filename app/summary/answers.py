"""Parses a model's answer as a summary. Pure."""

from app.summarising.answer_text import UnusableAnswer, is_remnant, leaves_former
from app.summarising.judging.judge import Material, Profile
from app.summarising.prose import is_empty_answer, is_only_empty, read_prose


def parse_summary(answer: str, *, former: str, wished: bool = False) -> str:
    """Return the new summary; empty if `former` is empty and the model has nothing to summarise.

    If the model only says that the summary has not changed, `former` is returned. Raises UnusableAnswer if `read_prose`
    does, and if the word "nothing" or a short remark would replace a former summary. A short text is accepted if a
    person `wished` for something, such as fewer words.
    """
    text = read_prose(answer)
    if leaves_former(text, former):
        return former
    # A text that begins with "nothing" may be a first summary, but it must not replace a former one.
    if former.strip() and is_empty_answer(text):
        raise UnusableAnswer("the answer is empty, but the former summary is not")
    if not wished and is_remnant(text, former):
        raise UnusableAnswer("the answer drops nearly all of the former summary")
    return "" if is_only_empty(text) else text


def _read(answer: str, material: Material) -> str:
    return parse_summary(answer, former=material.former, wished=material.wished)


SUMMARY_PROFILE = Profile(
    read=_read,
    text=lambda text: text or None,
    in_past=True,
    from_sources=True,
    may_shrink=False,
    ends=True,
    min_letters=10,
)
