"""How many names and numbers the extractive summariser keeps, measured on LoCoMo.

    python -m bench.extractive --locomo locomo10.json

Each conversation is divided into batches of 8 consecutive messages, and each batch gets a memo of at most three lines
and 60 tokens (o200k, including the speakers' labels). The gold observations are facts that people noted, with the
messages that contain them. A name or number of an observation is kept if the memo of a batch with one of these messages
contains the word. The same word in any other memo does not count.

A number is a word with a digit in it, or a number word from `two` up. A name is a word that the observations
of the conversation capitalise within a sentence and never write in lower case, so neither `While` at a
beginning nor `The` in a title is one. Words are compared whole and case folded: `three` does not keep `3`.

Columns, in percent:
    tuned, held out, all   the five conversations that were used to choose the weights, the other five, and all ten;
                           without the names of the two speakers, which every label contains
    said                   all ten, only words that the batch contains: a quotation cannot keep the others
    +speakers              all ten with the speakers' names, labels included
    unlabelled             the same without the labels
    words                  all ten, with all words of four letters or more instead of names and numbers: a memo that
                           consists of names only would score badly here
    scraps, cut            lines of fewer than six words, and lines with a `…`

The baselines take whole sentences, with the same budget and labels: the longest, the first, any.
"""

import argparse
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from app.kit.tokens import count_tokens
from app.summarising.extractive import MAX_HIGHLIGHTS, Frequencies, extract_with
from app.summarising.sentences import count_words, split_sentences
from app.summarising.transcript import Utterance
from bench.locomo import Conversation, add_locomo_option, read_locomo

BATCH_MESSAGES = 8
BUDGET_TOKENS = 60
HISTORY_MESSAGES = 2_000
SCRAP_WORDS = 6

_TUNED = ("conv-26", "conv-41", "conv-43", "conv-47", "conv-49")
_WORD = re.compile(r"[^\W_]+")
_INNER_WORD = re.compile(r"(?<=[\w,;] )[^\W_]+")
_NUMBER_WORDS = frozenset(
    _WORD.findall("""
        two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
    """)
)

Summariser = Callable[[Sequence[Utterance], Frequencies], list[str]]


@dataclass(frozen=True, slots=True)
class Expected:
    """A word of an observation, case folded, and the batches that contain its evidence."""

    word: str
    batches: frozenset[int]
    telling: bool  # a name or number
    speaker: bool  # one of the two speakers' names


def expected_words(conversation: Conversation) -> list[Expected]:
    """Return the words of all observations of `conversation`, once for each observation that contains them."""
    batch_of = {message.id: at // BATCH_MESSAGES for at, message in enumerate(conversation.messages)}
    texts = [observation.text for observation in conversation.observations]
    written = {word for text in texts for word in _WORD.findall(text)}
    inner = {word for text in texts for word in _INNER_WORD.findall(text)}
    names = {word.casefold() for word in inner if word[0].isupper() and word.lower() not in written}
    speakers = set(words_of(" ".join(conversation.speakers)))
    return [
        Expected(
            word,
            frozenset(batch_of[id_] for id_ in observation.evidence),
            telling=word in names or word in _NUMBER_WORDS or any(char.isdigit() for char in word),
            speaker=word in speakers,
        )
        for observation in conversation.observations
        for word in sorted(words_of(observation.text))
    ]


def share(expected: Sequence[Expected], memos: Sequence[set[str]]) -> tuple[int, int]:
    """Return how many of the `expected` words the memo of one of their batches contains, and how many there are.

    Args:
        expected: Words of one conversation.
        memos: The words of each batch's memo, case folded.

    """
    kept = sum(any(word.word in memos[batch] for batch in word.batches) for word in expected)
    return kept, len(expected)


def extractive(batch: Sequence[Utterance], frequencies: Frequencies) -> list[str]:
    """Return the memo that the service makes if no model is configured."""
    return extract_with(batch, frequencies, budget_tokens=BUDGET_TOKENS, count_tokens=count_tokens)


def longest(batch: Sequence[Utterance], _: Frequencies) -> list[str]:
    """Return the longest sentences."""
    return _fill(sorted(_lines(batch), key=len, reverse=True))


def first(batch: Sequence[Utterance], _: Frequencies) -> list[str]:
    """Return the first sentences."""
    return _fill(_lines(batch))


def any_(batch: Sequence[Utterance], _: Frequencies) -> list[str]:
    """Return random sentences, the same ones in every run."""
    lines = _lines(batch)
    return _fill(random.Random(batch[0].seq).sample(lines, len(lines)))


def whole(batch: Sequence[Utterance], _: Frequencies) -> list[str]:
    """Return the whole batch, without a budget."""
    return [f"{utterance.name}: {utterance.text}" for utterance in batch]


SUMMARISERS: dict[str, Summariser] = {
    "extractive": extractive,
    "longest sentences": longest,
    "first sentences": first,
    "any sentences": any_,
    "(whole batch)": whole,
}


def _lines(batch: Sequence[Utterance]) -> list[str]:
    return [
        f"{utterance.name}: {''.join(sentence.clauses)}"
        for utterance in batch
        for sentence in split_sentences(utterance.text)
    ]


def _fill(lines: Sequence[str]) -> list[str]:
    """Return those of `lines`, in their order, that fit into the budget."""
    taken: list[str] = []
    left_tokens = BUDGET_TOKENS
    for line in lines:
        tokens = count_tokens(line)
        if tokens <= left_tokens and len(taken) < MAX_HIGHLIGHTS:
            taken.append(line)
            left_tokens -= tokens
    return taken


def words_of(text: str) -> set[str]:
    """Return the words of `text`, case folded."""
    return {word.casefold() for word in _WORD.findall(text)}


def _batches(conversation: Conversation) -> Iterator[tuple[list[Utterance], Frequencies]]:
    """Return each batch with the word frequencies of the conversation up to its end."""
    utterances = conversation.utterances()
    for start in range(0, len(utterances), BATCH_MESSAGES):
        end = start + BATCH_MESSAGES
        yield utterances[start:end], Frequencies.of(utterances[:end])


def _measure(conversation: Conversation) -> dict[str, list[tuple[int, int]]]:
    """Return the columns that the module's docstring lists, by summariser, for one conversation."""
    batches = list(_batches(conversation))
    source = [words_of("\n".join(whole(batch, frequencies))) for batch, frequencies in batches]
    expected = expected_words(conversation)
    telling = [word for word in expected if word.telling]
    strict = [word for word in telling if not word.speaker]
    said = [word for word in strict if share([word], source)[0]]
    long = [word for word in expected if len(word.word) >= 4 and not word.speaker]
    tuned = conversation.id in _TUNED
    columns = {}
    for name, summarise in SUMMARISERS.items():
        memos = [summarise(batch, frequencies) for batch, frequencies in batches]
        unlabelled = [[line.partition(": ")[2] for line in memo] for memo in memos]
        labelled = [words_of("\n".join(memo)) for memo in memos]
        bare = [words_of("\n".join(memo)) for memo in unlabelled]
        lines = [line for memo in unlabelled for line in memo]
        columns[name] = [
            share(strict if tuned else [], labelled),
            share([] if tuned else strict, labelled),
            share(strict, labelled),
            share(said, labelled),
            share(telling, labelled),
            share(telling, bare),
            share(long, labelled),
            (sum(count_words(line) < SCRAP_WORDS for line in lines), len(lines)),
            (sum("…" in line for line in lines), len(lines)),
        ]
    return columns


def _percent(counts: Iterable[tuple[int, int]]) -> float:
    kept, of = map(sum, zip(*counts, strict=True))
    return 100 * kept / max(1, of)


def _print_speed(conversations: Sequence[Conversation]) -> None:
    """Print the milliseconds for one batch of a long chat: for counting its history, and for choosing sentences."""
    said = [utterance for conversation in conversations for utterance in conversation.utterances()]
    history = said[:HISTORY_MESSAGES]
    counting, choosing = [], []
    for start in range(0, 50 * BATCH_MESSAGES, BATCH_MESSAGES):
        began = time.perf_counter()
        frequencies = Frequencies.of(history)
        counted = time.perf_counter()
        extractive(history[start : start + BATCH_MESSAGES], frequencies)
        counting.append(counted - began)
        choosing.append(time.perf_counter() - counted)
    print(
        f"\nOne batch after {len(history)} messages: {1000 * median(choosing):.1f} ms, "
        f"and {1000 * median(counting):.1f} ms once to count them (medians of {len(counting)})"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The names and numbers that memos keep")
    add_locomo_option(parser)
    conversations = read_locomo(parser.parse_args().locomo)
    measured = [_measure(conversation) for conversation in conversations]
    columns = ("tuned", "held out", "all", "said", "+speakers", "unlabelled", "words", "scraps", "cut")
    print(f"| {'':<17} |" + "".join(f" {column:>10} |" for column in columns))
    print(f"|{'-' * 19}|" + f"{'-' * 11}:|" * len(columns))
    for name in SUMMARISERS:
        percents = map(_percent, zip(*(conversation[name] for conversation in measured), strict=True))
        print(f"| {name:<17} |" + "".join(f" {percent:>10.1f} |" for percent in percents))
    _print_speed(conversations)


if __name__ == "__main__":
    main()
