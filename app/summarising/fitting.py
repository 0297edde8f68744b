"""Putting a prompt together so that it fits the model: what is quoted in it is shortened, each its fair share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.kit.fillable import Fillable
from app.kit.llm import ChatMessage
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS
from app.summarising.quoting import quoted, shorten_to_share
from app.summarising.transcript import Utterance


class DoesNotFit(Exception):
    """The budget leaves nothing of a text that said something."""

    def __init__(self) -> None:
        super().__init__("the prompt does not fit the model's context")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that is quoted as one line of JSON, and may be shortened.

    Attributes:
        labels: What else the line says, before the text.
        key: What the line calls the text.
        text: Unshortened.

    """

    labels: Mapping[str, object]
    key: str
    text: str

    def quote(self, text: str) -> str:
        """The line with `text` for its own."""
        return quoted({**self.labels, self.key: text})


def utterance_passage(said: Utterance, **labels: object) -> Passage:
    """What was said, with who said it; `labels` come first, those that are None are left out."""
    given = {name: value for name, value in labels.items() if value is not None}
    return Passage({**given, "speaker": said.name}, "message", said.text)


def fill_to_fit(
    prompt: Fillable,
    texts: Mapping[str, str],
    passages: Sequence[Passage],
    *,
    into: str = "messages",
    budget_tokens: int,
    count_tokens: Callable[[str], int],
) -> list[ChatMessage]:
    """Fill `prompt` with `texts`, and its place `into` with `passages`, one a line.

    `budget_tokens` is for both messages together; passages are shortened to fit. Raises DoesNotFit where nothing
    would be left of one: what a model makes of a text that it has not seen would be invented.
    """

    def ask(shortened: Sequence[str]) -> list[ChatMessage]:
        told = [passage.quote(text) for passage, text in zip(passages, shortened, strict=True)]
        return prompt.fill(**texts, **{into: "\n".join(told)})

    whole = [passage.text for passage in passages]
    room_tokens = budget_tokens - cost_of(ask([""] * len(passages)), count_tokens)
    while room_tokens >= 0:
        shortened = shorten_to_share(whole, room_tokens, lambda text: count_tokens(quoted(text)))
        if any(text and not left for text, left in zip(whole, shortened, strict=True)):
            break
        asked = ask(shortened)
        # A text can take a token more between its neighbours than alone.
        excess_tokens = cost_of(asked, count_tokens) - budget_tokens
        if excess_tokens <= 0:
            return asked
        room_tokens -= excess_tokens
    raise DoesNotFit


def cost_of(messages: Sequence[ChatMessage], count_tokens: Callable[[str], int]) -> int:
    """The tokens that a prompt takes."""
    return sum(count_tokens(message["content"]) + MESSAGE_OVERHEAD_TOKENS for message in messages)
