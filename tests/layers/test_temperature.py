"""The temperature of the requests for one answer: after two refused answers it is higher."""

from contextlib import aclosing, suppress

import pytest

from app.kit.llm.client import ChatMessage, ModelClient
from app.kit.llm.request_settings import RequestSettings
from app.layers.ask import Inquiry, NoUsableAnswer, ask_model
from app.summarising.judging.judge import Material
from tests.layers.word_counts import COUNTS_PROFILE
from tests.scripted_model import ScriptedModel


@pytest.mark.parametrize(
    ("prompts", "configured", "last"),
    [
        (0.0, None, 0.7),
        (0.3, None, 0.8),
        (0.9, None, 1.0),
        (0.9, 0.0, 0.7),
        (0.0, 0.4, 0.9),
        (0.3, 0.9, 1.0),
        (0.3, 1.0, 1.0),
        (0.3, 1.4, 1.4),
    ],
)
async def test_the_last_request_has_a_higher_temperature(
    model: ScriptedModel, prompts: float, configured: float | None, last: float
) -> None:
    model.otherwise = "Nobody says anything."
    settings = RequestSettings(temperature=configured)
    request: list[ChatMessage] = [{"role": "system", "content": "Count."}, {"role": "user", "content": "Kai: Hello."}]
    async with aclosing(ModelClient(model.base_url, "tiny", settings=settings)) as client:
        with suppress(NoUsableAnswer):
            await ask_model(
                Inquiry(client),
                lambda _budget_tokens: request,
                COUNTS_PROFILE,
                Material(["Kai: Hello."]),
                answer_tokens=200,
                temperature=prompts,
            )
    usual = prompts if configured is None else configured
    assert [sent["temperature"] for sent in model.requests] == [usual, usual, pytest.approx(last)]
