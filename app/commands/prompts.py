"""Which prompts there are, and those that the deployment has put in their place."""

from app.diary.prompts import DIARY, DIARY_ENTRY
from app.kit.settings import Settings
from app.memos.prompts import MEMO
from app.scenes.prompts import SCENE_BREAK, SCENE_RECAP
from app.scenes.recap_prompt import RECAP
from app.summarising.prompt_folder import PromptBook, load_prompts
from app.summary.prompts import SUMMARY

PROMPTS = (MEMO, SUMMARY, DIARY, DIARY_ENTRY, SCENE_BREAK, SCENE_RECAP, RECAP)


def load_prompt_book(settings: Settings) -> PromptBook:
    """The prompts of this deployment. Raises SettingsError with one line that names what is wrong with its folder.

    Every command that starts a worker or an API calls it first, so that whoever changes a prompt hears of a mistake
    from whatever is started next.
    """
    return load_prompts(PROMPTS, settings.prompts_dir, context_tokens=settings.llm_context_tokens)
