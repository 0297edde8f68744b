"""The samples of all registered layers. A sample itself imports `sample.py` alone, so that no import is circular."""

import importlib
from collections.abc import Mapping
from types import ModuleType

from app.registry import LAYERS
from tests.layers.sample import LayerSample
from tests.talk import Json


def find_sample(layer_name: str) -> LayerSample | None:
    """The `SAMPLE` of `tests/<layer_name>/sample.py`, or None if there is none."""
    sample = getattr(_import_if_there(f"tests.{layer_name}.sample"), "SAMPLE", None)
    return sample if isinstance(sample, LayerSample) else None


def _import_if_there(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise


SAMPLES: Mapping[str, LayerSample] = {layer.name: find_sample(layer.name) or LayerSample() for layer in LAYERS}
"""The sample of each registered layer. `test_samples.py` fails where one is missing or leaves something out."""


def list_settings() -> Json:
    """The settings under which 16 messages leave something for every layer."""
    return {section: values for sample in SAMPLES.values() for section, values in sample.settings.items()}
