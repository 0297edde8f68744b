"""What is wrong with a replaced prompt ends every command at its start, with one line that names it."""

from pathlib import Path

import pytest

from app.commands.prompts import PROMPTS, load_prompt_set
from app.kit.settings import Settings
from app.kit.tokens import count_tokens
from app.memos.prompts import MEMO
from app.registry import LAYERS
from tests.commands.here import refusal_here
from tests.commands.test_start import refusal
from tests.conftest import PROJECT
from tests.layers.samples import SAMPLES


@pytest.mark.parametrize("command", ["up", "demo", "api", "worker"])
async def test_a_wrong_prompt_is_named_before_anything_is_started(tmp_path: Path, command: str) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/memo.md").write_text("Rules.\n=== user ===\n{{messages}}\n")
    said = await refusal(tmp_path, command, MEMOBOOK_PROMPTS_DIR="prompts")
    assert said == "memobook: MEMOBOOK_PROMPTS_DIR: prompts/memo.md: has no {{before}}\n"
    assert _names_in(tmp_path) == ["prompts"]


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = await refusal_here(tmp_path, "up", MEMOBOOK_PROMPTS_DIR="nowhere")
    assert said == "memobook: MEMOBOOK_PROMPTS_DIR: nowhere: cannot be read (No such file or directory)\n"


async def test_a_prompt_that_leaves_no_room_is_listed_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    placeholders = " ".join(f"{{{{{name}}}}}" for name in sorted(MEMO.placeholders))
    (tmp_path / "prompts/memo.md").write_text(f"{'Rules. ' * 2_000}\n=== user ===\n{placeholders}\n")
    settings = {"MEMOBOOK_PROMPTS_DIR": "prompts", "MEMOBOOK_LLM_CONTEXT_TOKENS": "4096"}
    said = await refusal_here(tmp_path, "worker", **settings)
    assert said.startswith("memobook: MEMOBOOK_PROMPTS_DIR: prompts/memo.md: takes 4,0")
    assert said.endswith(
        " of the 4,096 tokens of MEMOBOOK_LLM_CONTEXT_TOKENS; it may take at most three quarters of them\n"
    )


@pytest.mark.parametrize("name", ["MODEL", "MAX_TOKENS", "TEMPERATURE", "EXTRA_BODY"])
@pytest.mark.parametrize("layer", ["sumary", "facts"])
async def test_a_setting_of_a_layer_without_prompts_is_named(tmp_path: Path, name: str, layer: str) -> None:
    value = {"MODEL": '"large"', "MAX_TOKENS": "600", "TEMPERATURE": "1", "EXTRA_BODY": "{}"}[name]
    said = await refusal_here(tmp_path, "worker", **{f"MEMOBOOK_LLM_{name}_OF": f'{{"{layer}": {value}}}'})
    assert said == (
        f"memobook: MEMOBOOK_LLM_{name}_OF: no layer '{layer}' asks a model; the layers that do are "
        "memos, summary, diary, scenes, consolidation\n"
    )


def test_the_example_settings_name_the_layers_that_ask_a_model() -> None:
    named = ", ".join(layer.name for layer in LAYERS if layer.prompts)
    assert named in (PROJECT / ".env.example").read_text(encoding="utf-8").replace("\n# ", " ")


def test_each_built_in_prompt_fits_the_smallest_allowed_model() -> None:
    for prompt in PROMPTS:
        assert count_tokens(prompt.system) + count_tokens(prompt.user) <= 4_096 * 3 / 4, prompt.name


def test_every_layer_finds_its_prompt_by_its_name() -> None:
    book = load_prompt_set(Settings.model_construct(prompts_dir=None))
    assert {name: prompt.name for name, prompt in book.items()} == {name: name for name in book}
    assert set(book) == {version.partition("/")[0] for sample in SAMPLES.values() for version in sample.wording}


def _names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]
