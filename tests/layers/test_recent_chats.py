from uuid import uuid4

from app.layers.recent_chats import RecentChats, Remembered

FOUND = Remembered("tag", {"facts": "[]", "blocks": None}, needs_others=False)


def test_the_chats_that_were_read_last_are_known() -> None:
    first, second, third = (uuid4() for _ in range(3))
    recent = RecentChats(max_chats=2, max_bytes=10_000)
    for chat in (first, second, first, third):
        recent.note(chat, FOUND)
    assert [chat in recent for chat in (first, second, third)] == [True, False, True]
    recent.note(first, None)
    recent.note(second, None)
    assert [chat in recent for chat in (first, second, third)] == [False, False, True]


def test_a_chat_that_needs_nothing_is_forgotten() -> None:
    chat = uuid4()
    recent = RecentChats(max_chats=2, max_bytes=10_000)
    recent.note(chat, FOUND)
    assert recent.find(chat) == FOUND
    recent.note(chat, None)
    assert recent.find(chat) is None


def test_a_chat_is_known_without_its_results() -> None:
    chat, others = uuid4(), [uuid4() for _ in range(9)]
    recent = RecentChats(max_chats=10, max_bytes=1_000)
    for one in (chat, *others):
        recent.note(one, Remembered("tag", {"facts": "é" * 150}, needs_others=False))
    assert (chat in recent, recent.find(chat)) == (True, None)
    assert recent.find(others[-1]) is not None
