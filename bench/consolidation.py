"""What consolidation learns without a model, measured on LoCoMo.

    python -m bench.consolidation --locomo locomo10.json [--show 50]

Each conversation is consolidated in ranges of consecutive messages, as the job does every N turns: 2, 10 (the default
of five turns) and 20 messages, with the word frequencies of at most 500 messages before. Nothing is deduplicated or
evicted, so all that was learnt counts as live.

Columns:
    kept        percent of the names and numbers in the gold observations that a memory or fact from the same range as
                their evidence contains; `bench/extractive.py` says what a name is. The speakers' names do not count
    anywhere    the same if any memory of the conversation may contain the word
    tokens      of all facts and memories, labels included, for each message of the conversation
    precision   percent of the memories and facts whose message is evidence of an observation
    confirmed   percent whose message is, and that share two words of four letters or more with that observation
    learnt      the number of facts and memories

40 percent of the messages are evidence of an observation, so a random choice would have a precision of 40.
`--show N` prints N memories drawn at random, and all facts: `+` before a confirmed one, `?` if only its message is
evidence, `-` for the rest.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass

from app.consolidation.extractive import learn
from app.consolidation.learnt import Learnt
from app.kit.tokens import count_tokens
from app.summarising.extractive import Frequencies
from bench.extractive import expected_words, words_of
from bench.locomo import Conversation, add_locomo_option, read_locomo

RANGES = (2, 10, 20)
HISTORY_MESSAGES = 500
MIN_SHARED = 2
MIN_LETTERS = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """The counts of one conversation.

    Attributes:
        wanted: The names and numbers of the observations.
        kept: Those of them that were kept from their range.
        anywhere: Those of them that were kept at all.
        tokens: Of all that was learnt.
        messages: Of the conversation.
        verdicts: (`+`, `?` or `-`, what was learnt).

    """

    wanted: int
    kept: int
    anywhere: int
    tokens: int
    messages: int
    verdicts: Sequence[tuple[str, Learnt]]


def measure(conversation: Conversation, range_messages: int) -> Measured:
    """Return the counts of `conversation`, consolidated in ranges of `range_messages`."""
    utterances = conversation.utterances()
    learnt: list[list[Learnt]] = []
    for start in range(0, len(utterances), range_messages):
        end = start + range_messages
        frequencies = Frequencies.of(utterances[max(0, end - HISTORY_MESSAGES) : end])
        learnt.append(learn(utterances[start:end], frequencies, count_tokens=count_tokens))
    words = [words_of("\n".join(map(_text, part))) for part in learnt]
    range_of = {message.id: at // range_messages for at, message in enumerate(conversation.messages)}
    telling = {word.word for word in expected_words(conversation) if word.telling and not word.speaker}
    wanted = [
        (word, {range_of[id_] for id_ in observation.evidence})
        for observation in conversation.observations
        for word in words_of(observation.text) & telling
    ]
    everything = [one for part in learnt for one in part]
    everywhere = set[str]().union(*words)
    return Measured(
        wanted=len(wanted),
        kept=sum(any(word in words[at] for at in ranges) for word, ranges in wanted),
        anywhere=sum(word in everywhere for word, _ in wanted),
        tokens=sum(count_tokens(_text(one)) for one in everything),
        messages=len(utterances),
        verdicts=[(_judge(one, conversation), one) for one in everything],
    )


def _text(learnt: Learnt) -> str:
    return f"{learnt.key}: {learnt.content}" if learnt.key else learnt.content


def _judge(learnt: Learnt, conversation: Conversation) -> str:
    ids = {conversation.messages[seq - 1].id for seq in learnt.sources}
    supported = [observation for observation in conversation.observations if ids & set(observation.evidence)]
    said = words_of(_text(learnt))
    shared = (said & words_of(observation.text) for observation in supported)
    if any(sum(len(word) >= MIN_LETTERS for word in words) >= MIN_SHARED for words in shared):
        return "+"
    return "?" if supported else "-"


def _show(measured: Sequence[Measured], number: int) -> None:
    everything = [verdict for conversation in measured for verdict in conversation.verdicts]
    memories = [verdict for verdict in everything if verdict[1].kind == "memory"]
    chosen = random.Random(number).sample(memories, min(number, len(memories)))
    facts = [verdict for verdict in everything if verdict[1].kind == "fact"]
    print()
    for verdict, one in (*chosen, *facts):
        print(f"{verdict} {one.importance:.2f} {one.category or '':<12} {_text(one)}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What consolidation learns without a model")
    add_locomo_option(parser)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N memories of the ranges of ten")
    options = parser.parse_args()
    conversations = read_locomo(options.locomo)
    print("| messages a range | kept | anywhere | tokens | precision | confirmed | learnt | of them facts |")
    print(f"|{'--:|' * 8}")
    for messages in RANGES:
        measured = [measure(conversation, messages) for conversation in conversations]
        _print_row(messages, measured)
        if messages == RANGES[1]:
            shown = measured
    if options.show:
        _show(shown, options.show)


def _print_row(range_messages: int, measured: Sequence[Measured]) -> None:
    wanted = sum(one.wanted for one in measured)
    verdicts = [verdict for one in measured for verdict in one.verdicts]
    marks = [mark for mark, _ in verdicts]
    cells = (
        f"{100 * sum(one.kept for one in measured) / wanted:.1f}",
        f"{100 * sum(one.anywhere for one in measured) / wanted:.1f}",
        f"{sum(one.tokens for one in measured) / sum(one.messages for one in measured):.2f}",
        f"{100 * (1 - marks.count('-') / len(marks)):.1f}",
        f"{100 * marks.count('+') / len(marks):.1f}",
        f"{len(verdicts):,}",
        f"{sum(learnt.kind == 'fact' for _, learnt in verdicts)}",
    )
    print(f"| {range_messages} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
