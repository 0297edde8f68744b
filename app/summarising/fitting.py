"""Fills a prompt so that it fits the model's context: the quoted texts are shortened, each to a fair share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.kit.job_context import PromptTemplate
from app.kit.llm.client import ChatMessage
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS
from app.summarising.quoting import quoted, shorten_to_share
from app.summarising.transcript import Utterance


class DoesNotFit(Exception):
    """The prompt is too long even without the quoted texts, or the budget would leave nothing of one of them."""

    def __init__(self) -> None:
        super().__init__("the prompt does not fit the model's context")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that is quoted as one line of JSON and may be shortened.

    Attributes:
        labels: The fields of the line before the text.
        key: The name of the field with the text.
        text: The whole text.

    """

    labels: Mapping[str, object]
    key: str
    text: str

    def quote(self, text: str) -> str:
        """Return the line with `text` in place of the passage's own text."""
        return quoted({**self.labels, self.key: text})


def utterance_passage(said: Utterance, **labels: object) -> Passage:
    """Return the passage of an utterance with its speaker; `labels` come first, without those that are None."""
    given = {name: value for name, value in labels.items() if value is not None}
    return Passage({**given, "speaker": said.name}, "message", said.text)


def fill_to_fit(
    prompt: PromptTemplate,
    texts: Mapping[str, str],
    passages: Sequence[Passage],
    *,
    into: str = "messages",
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    most_tokens: int | None = None,
) -> list[ChatMessage]:
    """Return `prompt` filled with `texts`, and its placeholder `into` with `passages`, one per line.

    `budget_tokens` limits the system and the user message together, and `most_tokens`, if given, the texts of the
    passages together; passages are shortened to fit. Raises DoesNotFit if the prompt is too long even without passages,
    or if nothing would be left of a passage that is not empty: the model would invent its content.
    """

    def ask(shortened: Sequence[str]) -> list[ChatMessage]:
        quotes = [passage.quote(text) for passage, text in zip(passages, shortened, strict=True)]
        return prompt.fill(**texts, **{into: "\n".join(quotes)})

    whole = [passage.text for passage in passages]
    room_tokens = budget_tokens - cost_of(ask([""] * len(passages)), count_tokens)
    if most_tokens is not None:
        room_tokens = min(room_tokens, most_tokens)
    while room_tokens >= 0:
        shortened = shorten_to_share(whole, room_tokens, lambda text: count_tokens(quoted(text)))
        if any(text and not left for text, left in zip(whole, shortened, strict=True)):
            break
        asked = ask(shortened)
        # A text can take more tokens within the prompt than alone.
        excess_tokens = cost_of(asked, count_tokens) - budget_tokens
        if excess_tokens <= 0:
            return asked
        room_tokens -= excess_tokens
    raise DoesNotFit


def cost_of(messages: Sequence[ChatMessage], count_tokens: Callable[[str], int]) -> int:
    """Return the number of tokens of a prompt."""
    return sum(count_tokens(message["content"]) + MESSAGE_OVERHEAD_TOKENS for message in messages)
