from app.context.calls import drop_unanswered_calls, find_calls, find_native, inner_positions, name_results, word_calls
from app.context.segments import HistoryMessage
from tests.context.arrangements import call, entry


def asks(seq: int, *ids: str) -> HistoryMessage:
    return entry(seq, "assistant", "", tool_calls=[call(one) for one in ids])


def answers(seq: int, call_id: str) -> HistoryMessage:
    return entry(seq, "tool", "Found.", tool_call_id=call_id)


def test_a_result_belongs_to_the_nearest_earlier_call_of_its_id() -> None:
    history = [asks(1, "0"), answers(2, "0"), asks(3, "0"), answers(4, "0"), answers(5, "9")]
    assert find_calls(history) == {1: 0, 3: 2}


def test_a_cut_is_possible_except_between_a_call_and_its_result() -> None:
    assert inner_positions([entry(1), asks(2, "0"), entry(3), answers(4, "0"), entry(5)]) == {2, 3}


def test_calls_answered_by_the_next_messages_are_native() -> None:
    assert find_native([asks(1, "0", "1"), answers(2, "1"), answers(3, "0"), entry(4)]) == {0, 1, 2}


def test_calls_are_not_native_where_openai_would_refuse_them() -> None:
    assert find_native([asks(1, "0")]) == set()
    assert find_native([asks(1, "0"), entry(2), answers(3, "0")]) == set()
    assert find_native([asks(1, "0", "1"), answers(2, "0")]) == set()
    assert find_native([asks(1, "0", "0"), answers(2, "0"), answers(3, "0")]) == set()
    assert find_native([answers(1, "0"), entry(2)]) == set()


def test_a_second_answer_to_a_call_is_not_native() -> None:
    assert find_native([asks(1, "0"), answers(2, "0"), answers(3, "0")]) == {0, 1}


def test_a_call_of_unknown_shape_is_shown_as_text() -> None:
    odd = entry(1, "assistant", "", tool_calls=[{"id": "0", "function": "look"}])
    assert find_native([odd, answers(2, "0")]) == set()
    assert word_calls(odd) == '[calls tool {"id": "0", "function": "look"}]'


def test_a_custom_tool_is_a_tool() -> None:
    custom = {"id": "0", "type": "custom", "custom": {"name": "sing", "input": "la"}}
    sung = entry(1, "assistant", "", tool_calls=[custom])
    assert find_native([sung, answers(2, "0")]) == {0, 1}
    assert word_calls(sung) == "[calls sing la]"


def test_a_result_without_a_name_gets_the_functions_name() -> None:
    named = name_results([asks(1, "0"), answers(2, "0"), answers(3, "9")])
    assert [one.name for one in named] == [None, "look", None]


def test_only_calls_with_a_result_are_left() -> None:
    history = [asks(1, "0", "1"), answers(2, "1"), entry(3), asks(4, "0")]
    left = drop_unanswered_calls(history)
    assert [one.tool_calls for one in left] == [[call("1")], None, None, None]
    assert [one.text for one in left] == [one.text for one in history]
    assert [one.unanswered for one in left] == [False, False, False, True]


def test_a_blank_result_does_not_answer_a_call() -> None:
    left = drop_unanswered_calls([asks(1, "0"), entry(2, "tool", " \n", tool_call_id="0")])
    assert left[0].tool_calls is None


def test_calls_with_ids_of_any_type_are_dropped_if_unanswered() -> None:
    odd = entry(1, "assistant", "Wait.", tool_calls=[{"id": [1]}, {"id": 0}, {}])
    assert drop_unanswered_calls([odd, answers(2, "0")])[0].tool_calls == [{"id": 0}]
