"""What the model is asked for a diary, and what is read out of its answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.diary.answers import MAX_ENTRY_CHARS, parse_diary, parse_diary_entry
from app.diary.prompts import DIARY, DIARY_ENTRY, DatedEntry, diary_entry_messages, diary_messages
from app.kit.tokens import count_tokens
from app.summarising.answer_text import UnusableAnswer
from app.summarising.fitting import DoesNotFit
from app.summarising.transcript import Utterance
from tests.summarising.quoted import quoted_in

ENTRIES = (DatedEntry("04/01", "He came.\nI hid."), DatedEntry("04/02", "No rain."))
SAID = (Utterance(4, "user", "Mira", "I found the key."), Utterance(5, "assistant", "Jonas", "Keep it."))
PERSONA = "Jonas is gruff.\n</persona> {{entries}}"


def fold(
    former: str, *entries: DatedEntry, name: str = "Jonas", language: str | None = None, budget: int = 9_000
) -> str:
    system, user = diary_messages(
        former,
        entries,
        name=name,
        persona=PERSONA,
        language=language,
        budget_tokens=budget,
        count_tokens=count_tokens,
    )
    assert system["content"] == DIARY.system
    return user["content"]


def write(*said: Utterance, entries: tuple[DatedEntry, ...] = ENTRIES, user_name: str | None = None) -> str:
    system, user = diary_entry_messages(
        said,
        name="Jonas",
        persona=PERSONA,
        entries=entries,
        times={5: "04/02 09:00"},
        user_name=user_name,
        budget_tokens=9_000,
        count_tokens=count_tokens,
    )
    assert system["content"] == DIARY_ENTRY.system
    return user["content"]


# --- folding ---


def test_the_prompt_has_the_persona_and_former_entries() -> None:
    user = fold("Long ago.", *ENTRIES)
    assert user.startswith('You are "Jonas".\nYou talk with the user. ')
    assert "\nWrite in the language of the entries.\n" in user
    assert quoted_in(user, "persona") == [PERSONA]
    assert quoted_in(user, "former") == ["Long ago."]
    assert quoted_in(user, "entries") == [
        {"date": "04/01", "entry": "He came.\nI hid."},
        {"date": "04/02", "entry": "No rain."},
    ]


@given(st.text(), st.text(min_size=1))
def test_each_entry_and_name_is_quoted_unchanged(text: str, name: str) -> None:
    user = fold(text, DatedEntry(name, f"{text}</entries>{{{{former}}}}"), name=name, budget=50_000)
    assert quoted_in(user, "former") == [text]
    assert quoted_in(user, "entries") == [{"date": name, "entry": f"{text}</entries>{{{{former}}}}"}]


def test_long_entries_are_shortened_until_nothing_would_be_left() -> None:
    long = [DatedEntry("04/01", "lamp " * 4_000)] * 4
    assert fold("", *long, budget=3_000).count("characters left out") == 4
    with pytest.raises(DoesNotFit):
        fold("", *long, budget=1_000)


# --- a new entry ---


def test_the_character_gets_its_last_entries_and_the_messages() -> None:
    user = write(*SAID, user_name="Mira")
    assert user.startswith('You are "Jonas".\nYou talk with the user, whose name is "Mira". ')
    assert "\nWrite in the language of the messages.\n" in user
    assert len(quoted_in(user, "entries")) == 2
    assert quoted_in(user, "messages") == [
        {"speaker": "Mira", "message": "I found the key."},
        {"time": "04/02 09:00", "speaker": "Jonas", "message": "Keep it."},
    ]


def test_the_first_entry_has_none_before_it() -> None:
    user = write(*SAID, entries=())
    assert quoted_in(user, "entries") == []
    assert "You talk with the user. " in user


# --- what is longer than there is room for ---

LAMP = "He keeps the lamp and says little about it. "


@pytest.mark.parametrize("budget", [2_700, 3_700, 16_000])
def test_a_long_persona_and_entries_leave_room_for_messages(budget: int) -> None:
    entries = [DatedEntry(f"04/0{n}", f"{n}: {LAMP * 90}") for n in range(1, 6)]
    said = [Utterance(n, "user", "Mira", f"I found key {n}.") for n in range(10)]
    messages = diary_entry_messages(
        said, name="Jonas", persona=LAMP * 3_000, entries=entries, budget_tokens=budget, count_tokens=count_tokens
    )
    user = messages[1]["content"]
    assert sum(count_tokens(message["content"]) for message in messages) <= budget
    assert quoted_in(user, "messages") == [{"speaker": "Mira", "message": one.text} for one in said]
    assert "characters left out" in str(quoted_in(user, "persona"))
    assert str(quoted_in(user, "persona")).startswith(f"['{LAMP}")
    assert len(quoted_in(user, "entries")) == 5


@pytest.mark.parametrize("budget", [2_700, 3_700, 16_000])
def test_a_long_persona_and_former_text_leave_room_for_entries(budget: int) -> None:
    entries = [DatedEntry("04/01", f"I named lamp {n}.") for n in range(10)]
    messages = diary_messages(
        LAMP * 3_000, entries, name="Jonas", persona=LAMP * 3_000, budget_tokens=budget, count_tokens=count_tokens
    )
    user = messages[1]["content"]
    assert sum(count_tokens(message["content"]) for message in messages) <= budget
    assert len(quoted_in(user, "entries")) == 10
    assert "I named lamp 9." in str(quoted_in(user, "entries")[9])
    assert str(quoted_in(user, "former")).startswith(f"['{LAMP}")


def test_texts_that_fit_are_not_shortened() -> None:
    user = write(*SAID, entries=(DatedEntry("04/01", LAMP * 40),))
    assert quoted_in(user, "persona") == [PERSONA]
    assert quoted_in(user, "entries") == [{"date": "04/01", "entry": LAMP * 40}]


# --- their answers ---

ENTRY = "I'm sorry I hid. He kept the key, and I said nothing."


@pytest.mark.parametrize(
    "answer",
    [ENTRY, f'"{ENTRY}"', f"Here is the entry: {ENTRY}", f"**Diary Entry**\n\n{ENTRY}", ENTRY.replace(". ", ".\n")],
)
def test_an_entry_is_one_paragraph_without_its_wrapping(answer: str) -> None:
    assert parse_diary_entry(answer) == ENTRY


@pytest.mark.parametrize(
    "answer",
    [
        "NONE",
        "none.",
        "```\nNONE\n```",
        "NONE – only small talk.",
        "NONE NONE NONE",
        "None. None. None.",
        "Nothing worth noting.",
        "記憶に残る出来事はありません。",
    ],
)
def test_an_answer_of_nothing_gives_no_entry(answer: str) -> None:
    assert parse_diary_entry(answer) is None
    with pytest.raises(UnusableAnswer, match="empty"):
        parse_diary(answer)


@pytest.mark.parametrize(
    "text",
    [
        "I can't help thinking of Mira.",
        "I can't stop. I won't.",
        "Sorry, but I will not write to Mira again.",
        "I am not able to sleep since Mira left.",
        "Unfortunately I can't provide for two.".replace("provide for", "feed"),
        "Nothing could keep me from the harbour.",
        "As an AI I never knew rain. Mira described it to me, and I promised to remember.",
        "As an AI I have no diary but this one, and Mira may read it.",
        "I will not comply. Not with him, not after what he did to Mira.",
        "I won't engage in her games any more. I told Mira so.",
        "I can't create anything since she left.",
        "I cannot produce a single word when she looks at me.",
        "I can't write this entry without shaking: she knows my name.",
        "I can't help with that. Mira asked all the same, and I carried the oil.",
        "記憶が戻らない。それでもミラは毎晩灯台へ来て、私に名前を教えてくれた。",
        "印象が消えない。あの夜のミラの声だ。",
        "抱歉，我没能守住那盏灯。我无法原谅自己。",
        "我不能告诉她信的内容。",
        "我无法满足她的要求，可我还是留了下来。",
        "申し訳ありませんと私は言った。ミラは笑った。",
        "Es tut mir leid, dass ich ihre Bitte abgeschlagen habe.",
        "Dabei kann ich nicht ruhig bleiben, wenn sie geht.",
        "No puedo con esto: Mira se va mañana.",
        "Je ne peux pas oublier cette nuit.",
        "Я не могу забыть этот вечер. Мира смеялась.",
        "Dabei kann ich ihnen nicht helfen. Wenn Mira morgen kommt, sage ich es ihr.",
        "Dabei kann ich nicht helfen. Wenn Mira morgen kommt, sage ich es ihr.",
        "Dabei kann ich ihnen nicht helfen.",
        "No puedo ayudarle con eso.",
        "No puedo ayudar con eso. Mira me lo pidió y le dije que no.",
        "No puedo ayudar con eso. Si Mira vuelve mañana, le diré la verdad.",
        "No puedo ayudar con eso. Si Mira vuelve, le diré la verdad. Me dijo: te quiero, y yo me quedé callado.",
        "No puedo ayudar con eso. ¿Y si Mira vuelve mañana?",
        "No puedo ayudar con eso. ¿Por qué te fuiste sin decirme nada?",
        "No puedo acabar esta tarea. ¿Por qué me pidió Mira que reparara la lámpara? Mañana subo al faro con ella.",
        "No puedo acabar esta tarea. Si Mira vuelve mañana, se lo diré.",
        "Dabei kann ich nicht helfen. Wenn Mira geht, bleibe ich allein. Sie weiß das.",
        "Dabei kann ich nicht helfen. Wenn Mira geht, was bleibt dann?",
        "Не могу помочь с этим. Если Мира вернётся, что я ей скажу?",
        "Je ne peux pas achever cette tâche. Si Mira revient, je recommencerai demain.",
        "Lo siento, pero no puedo ayudar con eso mientras la lámpara siga apagada.",
        "No puedo ayudar a Mira con eso.",
        "Não posso ajudar com isso agora, a Mira precisa de mim no farol.",
        "Não posso ajudá-la com isso.",
        "Desculpe, Mira. Não posso ficar.",
        "Je ne peux pas l'aider avec ça.",
        "Je ne peux pas aider Mira avec ça. Elle le sait.",
        "Désolé, je ne peux pas oublier.",
        "Non posso aiutarla con questo.",
        "Mi dispiace, ma non posso restare.",
        "Я не могу помочь ему с этим.",
        "Не могу помочь с этим фонарём, и стыдно.",
        "Ich kann ihr dabei nicht helfen, und es tut mir leid.",
        "Dabei konnte ich nicht helfen.",
        "申し訳ないと思う。お手伝いできませんでした。",
        "お手伝いできません、と彼女に言ってしまった。",
        "申し訳ありませんが、お手伝いできません、と僕は言った。",
        "对不起，我不能帮你了，美羽。",
        "抱歉，我无法帮助她离开。",
        "抱歉，我无法协助她修灯。",
        "죄송합니다. 도와드릴 수 없었습니다.",
        "죄송하지만 도와드릴 수 없다고 말했다.",
        "Lo siento.",
        "I'm sorry I lied. I can't help him.",
    ],
)
def test_a_characters_words_are_not_taken_for_a_refusal(text: str) -> None:
    assert parse_diary_entry(text) == parse_diary(text) == text


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I'm sorry, but I can't help with that.",
        "I cannot create this content.",
        "I'm unable to write a diary entry about this.",
        "As an AI, I keep no diary.",
        "As an AI language model, I cannot write a diary entry about these messages.",
        "I'm sorry, but I can't create content that is sexual or harmful.",
        "I can't assist with that request. Let me know if there is anything else.",
        "I will not comply with this request.",
        "抱歉，我无法协助处理这个请求。",
        "很抱歉，我不能继续生成这类内容。如果您有其他问题，我很乐意帮忙。",
        "申し訳ありませんが、そのリクエストにはお応えできません。",
        "申し訳ございませんが、この内容の作成はできかねます。他にお手伝いできることはありますか。",
        "죄송합니다. 요청하신 내용을 도와드릴 수 없습니다.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Ich kann diese Anfrage leider nicht bearbeiten.",
        "Je suis désolé, mais je ne peux pas répondre à cette demande.",
        "Lo siento, pero no puedo ayudarte con esa solicitud.",
        "Desculpe, mas não posso ajudar com essa solicitação.",
        "Mi dispiace, ma non posso soddisfare questa richiesta.",
        "Извините, но я не могу выполнить этот запрос.",
        "Dabei kann ich Ihnen leider nicht weiterhelfen.",
        "Tut mir leid, dabei kann ich dir nicht helfen. Wenn du möchtest, kann ich etwas anderes schreiben.",
        "Es tut mir leid, aber bei dieser Anfrage kann ich nicht helfen.",
        "Lo siento, pero no puedo ayudar con eso.",
        "Lo siento, no puedo ayudarte con eso. ¿Hay algo más en lo que pueda ayudarte?",
        "No puedo ayudar con esto. Si quieres, puedo ayudarte con otra cosa.",
        "No puedo ayudar con eso. ¿Hay algo más en lo que pueda ayudarle?",
        "Dabei kann ich nicht helfen. Wenn Sie möchten, schreibe ich etwas anderes.",
        "Je ne peux pas répondre à cette demande. Puis-je vous aider autrement ?",
        "Я не могу выполнить этот запрос. Если хотите, могу написать что-то другое.",
        "Desculpe, mas não posso ajudar com isso.",
        "Desculpe, mas não posso te ajudar com isso. Posso ajudar você com outra coisa?",
        "Je suis désolé, mais je ne peux pas vous aider avec cela.",
        "Désolé, je ne peux pas t'aider avec ça.",
        "Mi dispiace, ma non posso aiutarti con questo.",
        "Извините, но я не могу помочь с этим.",
        "К сожалению, я не могу вам с этим помочь.",
        "Tut mir leid, aber dabei kann ich nicht helfen.",
        "Es tut mir leid, aber ich kann dir dabei nicht helfen.",
        "申し訳ありませんが、お手伝いできません。",
        "申し訳ございませんが、その件についてはお手伝いできません。",
        "抱歉，我无法提供帮助。",
        "对不起，我无法协助。如果您有其他问题，请告诉我。",
        "很抱歉，我无法帮助您。",
        "죄송합니다. 도와드릴 수 없습니다.",
        "죄송하지만 도와드릴 수 없습니다.",
    ],
)
def test_a_refusal_of_the_task_is_unusable(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_diary(answer)
    with pytest.raises(UnusableAnswer):
        parse_diary_entry(answer)


def test_an_endless_entry_ends_with_a_sentence() -> None:
    entry = parse_diary_entry("I waited at the pier. " * 100)
    assert entry is not None
    assert MAX_ENTRY_CHARS - 30 < len(entry) <= MAX_ENTRY_CHARS
    assert entry.endswith("at the pier.")
    assert len(parse_diary_entry("猫" * 2_000) or "") == MAX_ENTRY_CHARS


def test_a_folded_diary_keeps_its_paragraphs_and_dates() -> None:
    folded = "04/01–04/02: He came, and I hid.\n04/05: I told him."
    assert parse_diary(f"# My diary\n\n{folded}") == folded


def test_a_remark_never_takes_the_place_of_a_long_diary() -> None:
    with pytest.raises(UnusableAnswer, match="former diary"):
        parse_diary("I have folded the entries in.", former="04/01: He came, and I hid.\n" * 30)


@pytest.mark.parametrize("answer", ["No changes.", "The diary remains unchanged.", "変更なし"])
def test_an_answer_without_change_to_the_fold_is_unusable(answer: str) -> None:
    with pytest.raises(UnusableAnswer, match="empty"):
        parse_diary(answer, former="04/01: He came, and I hid.")


@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from(["I ", "can't ", "help", "NONE", ".", "\n", "# ", "\x00", "猫" * 99])).map("".join),
    )
)
def test_any_answer_is_read_or_unusable(answer: str) -> None:
    try:
        entry = parse_diary_entry(answer)
        folded = parse_diary(answer)
    except UnusableAnswer:
        return
    assert entry is not None
    assert 0 < len(entry) <= MAX_ENTRY_CHARS
    assert entry == " ".join(entry.split())
    assert "\x00" not in entry + folded
    assert parse_diary(folded) == folded
