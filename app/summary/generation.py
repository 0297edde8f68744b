"""Asks a model for the next version of the summary."""

from zoneinfo import ZoneInfo

from app.kit.job_context import PromptTemplate
from app.kit.llm.client import ChatMessage
from app.kit.tokens import count_tokens
from app.layers.ask import Inquiry, ask_model
from app.narratives.service import FoldDraft
from app.summarising.judging.judge import Material
from app.summarising.source import Source
from app.summary.answers import SUMMARY_PROFILE
from app.summary.prompts import summary_messages

ANSWER_TOKENS = 1_200
"""Room for a summary of 500 o200k tokens, also in a script for which the model's own tokenizer needs more."""

TEMPERATURE = 0.3


async def ask_for_summary(
    inquiry: Inquiry, prompt: PromptTemplate, former: str, kept_text: str, source: Source, instruction: str | None
) -> FoldDraft:
    """Return the former summary with the source's messages folded in. Raises ModelError, NoUsableAnswer, DoesNotFit.

    `kept_text` is a person's text that comes before `former`. The model reads it in order not to repeat it.
    """
    zone = ZoneInfo(source.time_zone)

    def build(budget_tokens: int) -> list[ChatMessage]:
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

    material = Material(
        [said.text for said in source.utterances],
        former,
        language=source.language,
        names=source.speakers,
        kept=kept_text,
        wished=instruction is not None,
    )
    answer = await ask_model(
        inquiry, build, SUMMARY_PROFILE, material, answer_tokens=ANSWER_TOKENS, temperature=TEMPERATURE
    )
    return FoldDraft(answer.value, "model", answer.model, prompt.version)
