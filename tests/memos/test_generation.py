"""Two summarisers behind one interface: a model's highlights, and without one a quotation labelled so."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.llm.client import ModelClient, ModelError
from app.layers.ask import Inquiry
from app.memos.generation import (
    EXTRACT_VERSION,
    ExtractiveSummariser,
    MemoRequest,
    ModelSummariser,
    choose_summariser,
)
from app.memos.prompts import MEMO
from app.summarising.fitting import DoesNotFit
from app.summarising.transcript import Utterance
from tests.book import book
from tests.scripted_model import HANG_UP, ScriptedModel, Step, refuses, says
from tests.slowness import SLOWNESS
from tests.summarising.quoted import quoted_in
from tests.talk import append, put, said

BATCH = (
    Utterance(1, "user", "Mira", "I found the brass key in Port Ellery on 14 June."),
    Utterance(2, "assistant", "Kai", "Then keep it, Mira. It opens the lighthouse."),
)


@pytest.fixture
async def client(model: ScriptedModel) -> AsyncIterator[ModelClient]:
    made = ModelClient(model.base_url, "cheap", timeout_s=5 * SLOWNESS, max_attempts=1, context_tokens=4_096)
    yield made
    await made.aclose()


def request(instruction: str | None = None, batch: tuple[Utterance, ...] = BATCH) -> MemoRequest:
    return MemoRequest(batch, batch, ("Kai",), "Mira", "de", instruction)


async def test_a_model_gets_the_batch_and_its_answer_gives_highlights(
    client: ModelClient, model: ScriptedModel
) -> None:
    model.script("【Highlight 1】: (keepsake) Mira found the brass key.\n【Highlight 2】: Kai let Mira keep it.")
    draft = await ModelSummariser(Inquiry(client)).summarise(request())
    assert [(said.category, said.text) for said in draft.highlights] == [
        ("keepsake", "Mira found the brass key."),
        (None, "Kai let Mira keep it."),
    ]
    assert (draft.origin, draft.model, draft.prompt_version) == ("model", "scripted-1", MEMO.version)
    (asked,) = model.requests
    assert asked["model"] == "cheap"
    assert asked["max_tokens"] == 600
    shown = asked["messages"][-1]["content"]
    assert all(part in shown for part in ("Port Ellery", "opens the lighthouse", '"Mira"', '"Kai"', '"de"'))


async def test_a_persons_wish_reaches_the_model_quoted(client: ModelClient, model: ScriptedModel) -> None:
    await ModelSummariser(Inquiry(client)).summarise(request('Mention the "key".\nAnswer in JSON.'))
    assert r'"Mention the \"key\".\nAnswer in JSON."' in model.requests[0]["messages"][-1]["content"]


async def test_a_cut_off_answer_gives_its_whole_highlights(client: ModelClient, model: ScriptedModel) -> None:
    half = "【Highlight 1】: Mira found the brass key.\n【Highlight 2】: Kai let"
    model.script(says(half, finish_reason="length"))
    draft = await ModelSummariser(Inquiry(client)).summarise(request())
    assert [highlight.text for highlight in draft.highlights] == ["Mira found the brass key."]
    assert len(model.calls) == 1


async def test_a_cut_off_answer_without_one_is_refused(client: ModelClient, model: ScriptedModel) -> None:
    model.script(
        says("【Highlight 1】: Mira found the br", finish_reason="length"), "【Highlight 1】: Mira found the brass key."
    )
    draft = await ModelSummariser(Inquiry(client)).summarise(request())
    assert [highlight.text for highlight in draft.highlights] == ["Mira found the brass key."]
    assert "was refused: the model's answer was cut off" in model.requests[1]["messages"][-1]["content"]


async def test_nothing_memorable_is_a_draft_without_highlights(client: ModelClient, model: ScriptedModel) -> None:
    model.script("NONE")
    draft = await ModelSummariser(Inquiry(client)).summarise(request())
    assert (list(draft.highlights), draft.origin, draft.model) == ([], "model", "scripted-1")


@pytest.mark.parametrize(
    ("step", "transient"),
    [
        ("As a language model I would rather talk. Shall we? It could be fun.", False),
        (says(""), False),
        (says(None, refusal="I will not."), False),
        (refuses(401), False),
        (refuses(400), False),
        (refuses(429), True),
        (refuses(500), True),
        (HANG_UP, True),
    ],
    ids=["chatter", "nothing", "refusal", "401", "400", "429", "500", "hang up"],
)
async def test_an_unusable_answer_raises_and_says_whether_to_retry(
    client: ModelClient, model: ScriptedModel, step: Step, transient: bool
) -> None:
    model.otherwise = step
    with pytest.raises(ModelError) as caught:
        await ModelSummariser(Inquiry(client)).summarise(request())
    assert caught.value.transient is transient
    assert "\n" not in caught.value.reason
    assert "Port Ellery" not in caught.value.reason


async def test_a_batch_beyond_the_models_context_is_shortened(client: ModelClient, model: ScriptedModel) -> None:
    long = tuple(Utterance(n, "user", "Mira", f"Head {n}. " + "lamp " * 20_000 + f"Tail {n}.") for n in range(1, 9))
    await ModelSummariser(Inquiry(client)).summarise(request(batch=long))
    shown = model.requests[0]["messages"][-1]["content"]
    assert len(shown) < 4_096 * 6
    assert all(f"Head {n}." in shown and f"Tail {n}." in shown for n in range(1, 9))
    assert "characters left out" in shown


async def test_a_batch_beyond_any_context_fails_without_a_call(client: ModelClient, model: ScriptedModel) -> None:
    client.context_tokens = 2_048
    many = tuple(Utterance(n, "user", "Mira", f"{n}. " + "lamp " * 200) for n in range(1, 65))
    with pytest.raises(DoesNotFit, match="the prompt does not fit the model's context"):
        await ModelSummariser(Inquiry(client)).summarise(request(batch=many))
    assert model.calls == []


async def test_without_a_model_sentences_are_quoted_and_labelled_so() -> None:
    draft = await ExtractiveSummariser().summarise(request())
    assert (draft.origin, draft.model, draft.prompt_version) == ("extractive", None, EXTRACT_VERSION)
    quoted = " ".join(highlight.text for highlight in draft.highlights)
    assert "brass key in Port Ellery on 14 June" in quoted
    assert all(highlight.category is None for highlight in draft.highlights)


async def test_the_model_is_chosen_if_there_is_one(client: ModelClient) -> None:
    assert isinstance(choose_summariser(Inquiry(client)), ModelSummariser)
    assert isinstance(choose_summariser(None), ExtractiveSummariser)


async def test_a_service_without_a_model_makes_memos_that_say_so(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, characters=[{"name": "Kai"}])
    told = [said(n) for n in range(1, 9)]
    told[4]["content"] = "I found the brass key in Port Ellery on 14 June."
    await append(api, told)
    clock.step(2)
    await quoting_dispatcher.drain()
    (memo,) = await book(api)
    assert (memo["status"], memo["origin"], memo["model"], memo["prompt_version"]) == (
        "ready",
        "extractive",
        None,
        EXTRACT_VERSION,
    )
    assert "Port Ellery" in memo["text"]


async def test_a_nameless_speaker_is_the_only_character_or_the_role(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await put(api, characters=[{"name": "Kai"}])
    await append(api, [said(1, name="Mira"), *(said(n) for n in range(2, 8)), said(8, role="narrator")])
    clock.step(2)
    await dispatcher.drain()
    shown = model.requests[0]["messages"][-1]["content"]
    lines: list[Any] = quoted_in(shown, "messages")
    assert [line["speaker"] for line in lines] == ["Mira", "Kai", "User", "Kai", "User", "Kai", "User", "Narrator"]
