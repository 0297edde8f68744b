"""Which prompts there are, and those that the deployment has put in their place."""

from app.kit.settings import Settings
from app.layers.layer import list_prompts
from app.registry import LAYERS
from app.summarising.prompt_folder import PromptBook, load_prompts

PROMPTS = list_prompts(LAYERS)


def load_prompt_book(settings: Settings) -> PromptBook:
    """The prompts of this deployment. Raises SettingsError with one line that names what is wrong with its folder.

    Every command that starts a worker or an API calls it first, so that whoever changes a prompt hears of a mistake
    from whatever is started next.
    """
    return load_prompts(PROMPTS, settings.prompts_dir, context_tokens=settings.llm_context_tokens)
