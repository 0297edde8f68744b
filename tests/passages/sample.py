"""What the tests of all layers need to know of the index of words."""

from tests.layers.sample import LayerSample

SAMPLE = LayerSample(jobs_without_draft=frozenset({"gone", "index", "texts", "vectors"}))
