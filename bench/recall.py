"""What recall finds of LoCoMo's evidence, and how much of its token budget it needs.

    python -m bench.recall --locomo locomo10.json

Each question is searched in the messages of its conversation, all of which are out of the history, and the results are
chosen as a context with `recall=auto` and `query` chooses them. Questions without evidence, and
those of category 5, whose premise is false, are left out.

Columns:
    limit       the limit for the recalled text, in tokens; 500 is the default
    floor       the least share of the best score that a result must have (`app/search/choice.py` has LEAST_SCORE)
    evidence    percent of the questions' evidence messages that are recalled
    all         percent of the questions of which every evidence message is recalled
    tokens      of the recalled text, in the mean of all questions
    lines       results in the mean of all questions
    small talk  tokens that are recalled for messages of small talk, in the mean
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import orjson

from app.kit.tokens import count_tokens
from app.passages.words import find_terms, list_patterns
from app.search.choice import Hit, choose, word
from app.search.ranking import Candidate, rank
from bench.locomo import Conversation, add_locomo_option, read_locomo

FLOORS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5)
LIMITS_TOKENS = (2_000, 500)
MOST_CANDIDATES = 100
FALSE_PREMISE = 5
SMALL_TALK = (
    "Good morning! How did you sleep last night?",
    "Hahaha, that is so funny, I can't stop laughing.",
    "Thanks, that means a lot to me. Good night and take care!",
    "Hmm, I don't know what to say to that.",
    "It is raining again today, I think I will stay in bed.",
    "Okay, see you tomorrow then.",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the messages that answer it."""

    text: str
    evidence: frozenset[str]


def read_questions(path: Path) -> dict[str, list[Question]]:
    """Return the questions with evidence, by the id of their conversation."""
    found: dict[str, list[Question]] = {}
    for entry in orjson.loads(path.read_bytes()):
        for one in entry["qa"]:
            evidence = frozenset(part for named in one.get("evidence", ()) for part in named.replace(";", " ").split())
            if evidence and one["category"] != FALSE_PREMISE:
                found.setdefault(entry["sample_id"], []).append(Question(one["question"], evidence))
    return found


def search(conversation: Conversation, query: str) -> list[Hit]:
    """Return what a search over the messages of the conversation finds, best first."""
    terms = find_terms(query)
    patterns = list_patterns(terms)
    texts = {f"message:{one.id}": f"{one.speaker}: {one.text}" for one in conversation.messages}
    seqs = {source: seq for seq, source in enumerate(texts, start=1)}
    likely = [
        Candidate(source, text, None, seqs[source], seqs[source] / len(texts), conversation.id)
        for source, text in texts.items()
        if any(pattern in text.lower() for pattern in patterns)
    ]
    ranked = rank(terms, likely, total=len(texts))[:MOST_CANDIDATES]
    return [
        Hit(one.source, texts[one.source], None, seqs[one.source], seqs[one.source], one.score, one.parts)
        for one in ranked
    ]


def recall(hits: Sequence[Hit], floor: float, limit_tokens: int) -> list[Hit]:
    """Return the chosen results, without those whose words score less than `floor`."""
    return choose(hits, left_out=(), shown=(), limit_tokens=limit_tokens, count=count_tokens, least_score=floor)


def _tokens(hits: Sequence[Hit]) -> int:
    return count_tokens(word(hits)) if hits else 0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What recall finds")
    add_locomo_option(parser)
    options = parser.parse_args()
    asked = read_questions(options.locomo)
    found, talk = [], []
    for conversation in read_locomo(options.locomo):
        ids = {f"message:{message.id}" for message in conversation.messages}
        for question in asked[conversation.id]:
            wanted = {f"message:{one}" for one in question.evidence} & ids
            if wanted:
                found.append((wanted, search(conversation, question.text)))
        talk += [search(conversation, text) for text in SMALL_TALK]
    print(f"{len(found):,} questions")
    print("| limit | floor | evidence | all | tokens | lines | small talk |")
    print(f"|{'--:|' * 7}")
    for limit_tokens, floor in product(LIMITS_TOKENS, FLOORS):
        recalled = [(wanted, recall(hits, floor, limit_tokens)) for wanted, hits in found]
        sources = [(wanted, {hit.source for hit in hits}) for wanted, hits in recalled]
        evidence = sum(len(wanted) for wanted, _ in sources)
        cells = (
            f"{limit_tokens:,}",
            f"{floor:.2f}",
            f"{100 * sum(len(wanted & got) for wanted, got in sources) / evidence:.1f}",
            f"{100 * sum(wanted <= got for wanted, got in sources) / len(sources):.1f}",
            f"{sum(_tokens(hits) for _, hits in recalled) / len(recalled):,.0f}",
            f"{sum(len(hits) for _, hits in recalled) / len(recalled):.1f}",
            f"{sum(_tokens(recall(hits, floor, limit_tokens)) for hits in talk) / len(talk):,.0f}",
        )
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
