"""Asks a model for the next version of the summary."""

from functools import partial
from zoneinfo import ZoneInfo

from app.kit.job_context import PromptTemplate
from app.kit.llm import ChatMessage, LanguageModel
from app.kit.tokens import count_tokens
from app.layers.ask import ask_model
from app.narratives.service import FoldDraft
from app.summarising.source import Source
from app.summary.answers import parse_summary
from app.summary.prompts import summary_messages

ANSWER_TOKENS = 1_200
"""Room for 500 o200k tokens, also in scripts that take many tokens of the model's own tokenizer."""

TEMPERATURE = 0.3


async def ask_for_summary(
    model: LanguageModel, prompt: PromptTemplate, former: str, kept_text: str, source: Source, instruction: str | None
) -> FoldDraft:
    """Return the former summary with the source's messages folded in. Raises ModelError, DoesNotFit.

    `kept_text` is what a person wrote before `former`; the model reads it, so that it does not repeat it.
    """
    zone = ZoneInfo(source.time_zone)

    def build(budget_tokens: int, _complaint: str | None) -> list[ChatMessage]:
        return summary_messages(
            former,
            source.utterances,
            kept_text=kept_text,
            times={seq: f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for seq, at in source.sent_at.items()},
            characters=source.names,
            user_name=source.user_name,
            language=source.language,
            instruction=instruction,
            prompt=prompt,
            budget_tokens=budget_tokens,
            count_tokens=count_tokens,
        )

    read = partial(parse_summary, former=former, wished=instruction is not None)
    answer = await ask_model(model, build, read, answer_tokens=ANSWER_TOKENS, temperature=TEMPERATURE)
    return FoldDraft(answer.value, "model", answer.model, prompt.version)
