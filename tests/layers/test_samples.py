"""Every registered layer has a sample that covers what it has; a failure names what to add, and where."""

import re

import pytest

from app.chats.presets import PRESETS
from app.chats.settings import effective
from app.layers.layer import Layer
from app.lines.line_copy import list_copied
from app.registry import LAYERS
from tests.api.path_parameters import CHAT, find_layer_of, find_lists, is_listed, list_operations
from tests.golden.author import Author
from tests.golden.script import read_story
from tests.layers.samples import SAMPLES, find_sample

each_layer = pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)


def where(layer: Layer) -> str:
    """The file that a failure names."""
    return f"tests/{layer.name}/sample.py"


@each_layer
def test_a_registered_layer_has_a_sample(layer: Layer) -> None:
    assert find_sample(layer.name), (
        f"{where(layer)} has to define SAMPLE, a LayerSample: see “What its tests need” in docs/layers.md"
    )


@each_layer
def test_every_job_has_a_last_attempt(layer: Layer) -> None:
    sample = SAMPLES[layer.name]
    jobs = {job.prefix for job in layer.jobs}
    assert set(sample.last_attempts) | sample.jobs_without_draft == jobs, (
        f"last_attempts and jobs_without_draft of {where(layer)} have to name the prefixes of all jobs: {sorted(jobs)}"
    )
    assert not set(sample.last_attempts) & sample.jobs_without_draft, f"{where(layer)} names a job twice"


@each_layer
def test_every_prompt_has_its_wording(layer: Layer) -> None:
    versions = {prompt.version for prompt in layer.prompts}
    assert set(SAMPLES[layer.name].wording) == versions, (
        f"wording of {where(layer)} has to name the versions of all prompts: {sorted(versions)}"
    )


@each_layer
def test_each_sample_states_its_setting_in_every_preset(layer: Layer) -> None:
    setting = f"{layer.settings.section}.enabled" if layer.settings else None
    assert setting is None or setting in SAMPLES[layer.name].in_presets, (
        f"in_presets of {where(layer)} has to name {setting}"
    )


@each_layer
def test_each_preset_prompt_has_an_answer_in_the_golden_story(layer: Layer) -> None:
    in_use = any(layer.is_enabled(effective({"preset": preset})) for preset in PRESETS)
    answers = Author(read_story()).answers
    asked = {prompt.name for prompt in layer.prompts} - SAMPLES[layer.name].unasked_prompts if in_use else set()
    unanswered = sorted(asked - answers.keys())
    assert not unanswered, f"author of {where(layer)} has to answer {unanswered}"


@each_layer
def test_each_sample_says_where_rows_of_its_tables_begin(layer: Layer) -> None:
    shared = {table.name for other in LAYERS if other is not layer for table in other.tables}
    own = {table.name for table in layer.tables if table in list_copied()} - shared
    assert set(SAMPLES[layer.name].begins) == own, f"begins of {where(layer)} has to name the tables {sorted(own)}"


@each_layer
def test_every_parameter_of_a_path_has_a_value(layer: Layer) -> None:
    paths = {operation.partition(" ")[2] for operation in list_operations(layer)}
    parameters = {(path, name) for path in paths for name in re.findall(r"{(\w+)}", path) if name != "chat_id"}
    unlisted = {name for path, name in parameters if not is_listed(path, name)}
    assert unlisted <= set(SAMPLES[layer.name].path_parameters), (
        f"path_parameters of {where(layer)} has to give a value for {sorted(unlisted)}, because no list has one"
    )


@each_layer
def test_each_sample_names_the_problem_of_a_missing_item(layer: Layer) -> None:
    lists = {path for path, name in find_lists().items() if find_layer_of(f"{CHAT}{path}/{{{name}}}") == layer.name}
    assert set(SAMPLES[layer.name].missing) == lists, f"missing of {where(layer)} has to name {sorted(lists)}"
