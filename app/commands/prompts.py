"""The built-in prompts, and those of the deployment that replace them."""

from app.kit.settings import PREFIX, Settings, SettingsError
from app.layers.layer import list_prompts
from app.registry import LAYERS
from app.summarising.prompt_folder import PromptSet, load_prompts

PROMPTS = list_prompts(LAYERS)


def load_prompt_set(settings: Settings) -> PromptSet:
    """Return the prompts of this deployment, and check the settings that name layers.

    Every command that starts a worker or an API calls this first, so that mistakes are reported at startup. Raises
    SettingsError, with one line.
    """
    _check_layer_names(settings)
    return load_prompts(PROMPTS, settings.prompts_dir, context_tokens=settings.llm_context_tokens)


def _check_layer_names(settings: Settings) -> None:
    """Raise SettingsError if a setting whose values are given per layer names a layer that asks no model."""
    names = [layer.name for layer in LAYERS if layer.prompts]
    for setting in ("llm_model_of", "llm_max_tokens_of", "llm_temperature_of", "llm_extra_body_of"):
        for name in getattr(settings, setting) or ():
            if name not in names:
                known = ", ".join(names)
                raise SettingsError(
                    f"{PREFIX}{setting.upper()}: no layer {name!r} asks a model; the layers that do are {known}"
                )
