"""Words in hiragana in searches and in recall with a query."""

import httpx

from tests.facts.asking import KAI
from tests.search.finding import begin_long, find, message
from tests.search.test_recall_api import recalled
from tests.search.test_search_api import found
from tests.talk import append, context, put

CAT = "ねこが窓で寝ている。"
CLOCK = "さくらは時計を直した。"


async def test_recall_with_a_query_finds_words_in_hiragana(api: httpx.AsyncClient) -> None:
    await begin_long(api, CAT)
    for query in ("ねこ", "ねこ、ひなた"):
        assert recalled(await context(api, query=query)) == [f"- [message] User: {CAT}"]
        assert CAT in await find(api, query)
    assert f"- [message] User: {CAT}" not in recalled(await context(api, draft="ねこ"))


async def test_a_name_is_recalled_after_a_particle(api: httpx.AsyncClient) -> None:
    await begin_long(api, CLOCK)
    await put(api, status=200, user_name="さくら")
    for said in ("公園でさくらに会った", "僕はさくらが好き", "ねえさくら"):
        assert f"- [message] さくら: {CLOCK}" in recalled(await context(api, draft=said)), said


async def test_the_topic_counts_more_than_grammar(api: httpx.AsyncClient) -> None:
    await put(api, characters=[KAI], settings={"memos": {"enabled": False}})
    texts = ["Mira は図書館で本を読んでいる。", "どこにいるの？", "ここにいるよ。", "猫はどこにもいない。"]
    await append(api, [message(n, text) for n, text in enumerate([*texts, *["うん。"] * 6], start=1)])
    assert (await found(api, "Mira はどこにいるの？"))[:1] == ["message:m1"]
    assert "message:m2" in await found(api, "どこにいるの？")
