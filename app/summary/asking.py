"""Asks a model for the summary that comes next."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo

from app.kit.fillable import Fillable
from app.kit.llm import LanguageModel, ModelError
from app.kit.tokens import count_tokens
from app.narratives.service import FoldDraft
from app.summarising.reading import UnusableAnswer
from app.summarising.source import Source
from app.summary.answers import parse_summary
from app.summary.prompts import SUMMARY, summary_messages

ANSWER_TOKENS = 1_200
"""Room for 500 tokens of o200k, also in scripts that take the model's own tokenizer many."""


async def ask_for_summary(
    model: LanguageModel, prompts: Mapping[str, Fillable], former: str, source: Source, instruction: str | None
) -> FoldDraft:
    """The new summary: the former one with the source's messages folded in. Raises ModelError, DoesNotFit."""
    prompt = prompts.get(SUMMARY.name, SUMMARY)
    zone = ZoneInfo(source.time_zone)
    messages = summary_messages(
        former,
        source.utterances,
        times={seq: f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for seq, at in source.sent_at.items()},
        characters=source.names,
        user_name=source.user_name,
        language=source.language,
        instruction=instruction,
        prompt=prompt,
        budget_tokens=model.context_tokens - ANSWER_TOKENS,
        count_tokens=count_tokens,
    )
    answer = await model.complete(messages, max_tokens=ANSWER_TOKENS, temperature=0.3)
    if answer.finish_reason == "length":
        raise ModelError("the model's answer was cut off", transient=False)
    try:
        text = parse_summary(answer.text, former=former, wished=instruction is not None)
    except UnusableAnswer as error:
        raise ModelError(str(error), transient=False) from error
    return FoldDraft(text, "model", answer.model, prompt.version)
