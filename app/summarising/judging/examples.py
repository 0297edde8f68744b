"""Finds sentences that a model copied from the examples in its prompt. Pure."""

import re
from collections.abc import Iterable, Iterator

from app.kit.refusals import Refusal
from app.summarising.judging.speech import fold

_MIN_WORDS = 6
"""A shorter sentence may be in the examples and in the answer by chance."""

_EXAMPLES = re.compile(r"^# Examples[^\n]*\n(.*?)(?=\n\n# |\Z)", re.M | re.S)
_REASON = re.compile(r"\[[^\[\]\n]{1,200}\]\s*$")
_LEAD = re.compile(r"^[-\s]*(?:\(\w{1,20}\)|under \w{1,20}:)?\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s\|\s")


def find_copy(text: str, rules: str, sources: Iterable[str]) -> Refusal | None:
    """Return a refusal if `text` contains a sentence of the examples in `rules` that is not in `sources`.

    `rules` is the prompt's system text; its examples are under the heading `# Examples`, up to the next heading after a
    blank line.
    """
    said = fold(text)
    copied = [example for example in list_examples(rules) if example in said]
    if not copied:
        return None
    known = "\n".join(map(fold, sources))
    if all(example in known for example in copied):
        return None
    return Refusal("examples", "the answer copies an example from the instructions")


def list_examples(rules: str) -> Iterator[str]:
    """Yield the sentences of the examples in `rules` that have at least six words, folded."""
    for section in _EXAMPLES.findall(rules):
        for line in section.split("\n"):
            bare = _LEAD.sub("", _REASON.sub("", line), count=1)
            for sentence in map(fold, _SENTENCE_END.split(bare)):
                if sentence.count(" ") > _MIN_WORDS:
                    yield sentence
