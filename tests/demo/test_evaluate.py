"""`memobook eval` as people start it, with a model that misbehaves at times; and its table."""

import os
from pathlib import Path

import orjson
import pytest

from app.demo.tally import Outcome, count_outcomes, word_tally
from app.kit.refusals import Refusal
from tests.commands.here import refusal_here
from tests.demo.running import run_command, write_beginning
from tests.oracle.answers import DECLINES
from tests.scenes.story import NO_BREAK, asked_for
from tests.scripted_model import Request, ScriptedModel, quoting_memo, refuses


async def evaluate(model: ScriptedModel, *options: str) -> tuple[int | None, str, str]:
    """Exit code, output and complaints of `memobook eval` with a model."""
    configured = {"MEMOBOOK_LLM_BASE_URL": model.base_url, "MEMOBOOK_LLM_MODEL": "scripted"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMOBOOK_")}
    return await run_command("eval", *options, env=inherited | configured)


def answer(request: Request) -> str:
    """Decline the first memo twice, and answer everything else."""
    content = str(request["messages"][-1]["content"])
    if "write the whole summary anew" in content:
        return "Nell came to the tower and asked Quill for the key, and Quill refused to give it to her at first."
    match asked_for(request):
        case "break":
            return NO_BREAK
        case "scene":
            return "Title: The tower\n# Outcomes\n- Nell came to the tower.\n# Threads\n# State\n- place: the tower"
        case "recap":
            return "# Outcomes\n- Nell came to the tower.\n# Threads\n# State"
    return DECLINES if "He is quiet for exactly nine" in content else quoting_memo(request)


async def test_the_memory_and_the_table_are_printed(model: ScriptedModel, tmp_path: Path) -> None:
    model.otherwise = answer
    code, out, error = await evaluate(model, "--input", write_beginning(tmp_path / "start.jsonl", 40))
    assert (code, error) == (0, "")
    assert "The memo book: 5 memos of 40 messages" in out
    assert "The summary of messages" in out
    assert "quoted, the model declined" in out
    assert "no model" not in out
    assert "scripted: 40 messages in" in out
    rows = {line.split()[0]: line.split() for line in out[out.index("tokens in") :].splitlines() if line[:1].isalpha()}
    assert rows["memos"][1:9] == ["4", "1", "0", "0", "6", "2", "1", "0"]
    assert "memos, declined: " in out
    assert rows["summary"][1] != "0"
    assert len(model.calls) == sum(int(row[5]) for row in rows.values() if len(row) == 12)


async def test_without_a_model_one_line_says_what_to_set(tmp_path: Path) -> None:
    error = await refusal_here(tmp_path, "eval")
    assert error == "memobook: no model is configured; set MEMOBOOK_LLM_BASE_URL and MEMOBOOK_LLM_MODEL\n"


async def test_a_model_that_refuses_the_key_ends_it(model: ScriptedModel, tmp_path: Path) -> None:
    model.otherwise = refuses(401, message="wrong key")
    code, _, error = await evaluate(model, "--input", write_beginning(tmp_path / "start.jsonl", 10))
    assert code == 1
    assert error.count("\n") == 1
    assert "401" in error
    texts = {orjson.dumps(request) for request in model.requests}
    assert len(model.requests) <= 2 * len(texts)  # it waits for no third attempt


@pytest.mark.parametrize(
    ("item", "outcome"),
    [
        ({"status": "ready", "origin": "model"}, Outcome(made=1)),
        ({"status": "ready", "origin": "extractive"}, Outcome(quoted=1)),
        ({"status": "empty", "origin": "model"}, Outcome(empty=1)),
        ({"status": "failed", "origin": "model"}, Outcome(failed=1)),
        ({"status": "pending", "origin": "model"}, Outcome(failed=1)),
        ({"origin": "model"}, Outcome(made=1)),
    ],
)
def test_an_item_is_counted_once(item: dict[str, str], outcome: Outcome) -> None:
    assert count_outcomes([item]) == outcome


def test_the_table_counts_refusals_by_layer() -> None:
    declined, story = Refusal("declined", "the model refuses"), Refusal("story", "it goes on with the story")
    usage = [{"layer": "memos", "calls": 9, "failures": 1, "prompt_tokens": 1200, "completion_tokens": 34, "wait_s": 5}]
    lines = list(
        word_tally(
            "m",
            40,
            12.3,
            {"memos": Outcome(3, 1), "scenes": Outcome()},
            usage,
            [("memos", declined), ("memos", story)] * 2,
            {"memos": 3},
        )
    )
    head, row, other = next(lines[at - 1 : at + 2] for at, line in enumerate(lines) if line.startswith("memos"))
    assert row.split() == ["memos", "3", "1", "0", "0", "9", "4", "3", "1", "1,200", "34", "5.0"]
    assert other.split() == ["scenes", *["0"] * 10, "0.0"]
    assert head.index("asked again") + len("asked again") == row.index(" 3 ", 50) + 2
    assert len(head) == len(row) == len(other)
    assert "  · memos, declined: the model refuses (2 times)" in lines
