"""What the tests of the summary share."""

import httpx
import pytest

from tests.scripted_model import ScriptedModel
from tests.summary.folds import OWN_FOLDS, counting_fold
from tests.talk import put


@pytest.fixture
async def folding(api: httpx.AsyncClient, model: ScriptedModel) -> None:
    """The chat `c` with a summary alone, and a model that remembers each message by its number."""
    model.otherwise = counting_fold
    await put(api, settings=OWN_FOLDS)
