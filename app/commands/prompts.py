"""The built-in prompts, and those of the deployment that replace them."""

from app.kit.settings import Settings
from app.layers.layer import list_prompts
from app.registry import LAYERS
from app.summarising.prompt_folder import PromptSet, load_prompts

PROMPTS = list_prompts(LAYERS)


def load_prompt_set(settings: Settings) -> PromptSet:
    """Return the prompts of this deployment. Raises SettingsError, with one line, if its prompt folder is invalid.

    Every command that starts a worker or an API calls this first, so that mistakes in prompts are reported at startup.
    """
    return load_prompts(PROMPTS, settings.prompts_dir, context_tokens=settings.llm_context_tokens)
