"""Asks a model where a scene ends, for the recap of a scene, and for the running recap.

Each `ask_for_…` raises ModelError, NoUsableAnswer, and DoesNotFit if the request does not fit the model's context.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from zoneinfo import ZoneInfo

from app.kit.job_context import PromptTemplate
from app.kit.llm.client import ChatMessage
from app.kit.tokens import count_tokens
from app.layers.ask import Inquiry, ask_model
from app.narratives.service import FoldDraft
from app.scenes.answers import RECAP_PROFILE, SCENE_PROFILE, SceneText, parse_scene_recap, render_recap
from app.scenes.detection.breaks import object_to, parse_scene_break
from app.scenes.parts import MadeParts, ScenePart
from app.scenes.prompts import SceneRecap, recap_messages, scene_break_messages, scene_recap_messages
from app.scenes.recap_fold import MOST_SCENES
from app.summarising.answer_text import UnusableAnswer
from app.summarising.fitting import DoesNotFit
from app.summarising.judging.judge import Material, Profile
from app.summarising.source import Source
from app.summarising.transcript import Utterance

MOST_MESSAGES = 60
"""The maximum number of messages of a scene in one request: as many as cheap models still read well."""

TEMPERATURE = 0.3

KeepParts = Callable[[MadeParts], Awaitable[None]]
"""Stores the parts of a recap that were made."""

BREAK_TOKENS = 300
SCENE_TOKENS = 1_200
RECAP_TOKENS = 2_000
"""The token limits of answers: enough for what the prompts ask for, even in scripts that take many tokens."""


async def ask_for_break(
    inquiry: Inquiry, prompt: PromptTemplate, source: Source, *, candidates: Sequence[int], context: Collection[int]
) -> tuple[int | None, str]:
    """Return the candidate on which the scene ends, or None, and the reason."""

    def build(budget_tokens: int) -> list[ChatMessage]:
        return scene_break_messages(
            source.utterances,
            candidates=candidates,
            context=context,
            user_name=source.user_name,
            language=source.language,
            prompt=prompt,
            budget_tokens=budget_tokens,
            count_tokens=count_tokens,
        )

    profile, material = break_profile(candidates), Material(())
    answer = await ask_model(inquiry, build, profile, material, answer_tokens=BREAK_TOKENS, temperature=0.0)
    return answer.value


def break_profile(candidates: Sequence[int]) -> Profile[tuple[int | None, str]]:
    """Return the profile of answers that choose one of these breaks, or none. The reason is not judged as text."""

    def read(text: str, _material: Material) -> tuple[int | None, str]:
        break_at, reason = parse_scene_break(text)
        complaint = object_to(break_at, candidates)
        if complaint is not None:
            raise UnusableAnswer(complaint)
        return break_at, reason

    return Profile(read=read, text=lambda _found: None)


async def ask_for_scene(
    inquiry: Inquiry,
    prompt: PromptTemplate,
    join_prompt: PromptTemplate,
    source: Source,
    *,
    instruction: str | None,
    parts: MadeParts,
    keep: KeepParts | None = None,
) -> tuple[SceneText, str, str]:
    """Return the recap of the scene `source`, the model's name and the prompt's version.

    The recap is made only from the scene's own messages, so a change of earlier scenes does not make it stale. A long
    scene is split into parts. Each request contains the recap of the part before, so that names stay the same, and the
    recaps are then joined with `join_prompt`. `parts` are the recaps of the first parts, made by a former attempt.
    If a scene is split, `keep` is called after each new part and stores the recaps of all parts made so far. The
    refused answers are counted separately for each part and for the joining (`Inquiry.count_from`).
    """
    made = list(parts.parts)
    scene_recaps = [part.text for part in made]
    made_by = made[-1].model if made else ""
    inquiry.count_from(parts.refused_before)
    waiting = deque(_leave_out(part_evenly(source.utterances, MOST_MESSAGES), made[-1].last_seq if made else 0))
    while waiting:  # a part that does not fit is halved, down to single messages
        part = waiting.popleft()
        before = render_recap(scene_recaps[-1]) if scene_recaps else ""
        build = partial(_scene_messages, prompt, source, part, before, instruction)
        material = Material(
            [said.text for said in part],
            language=source.language,
            names=source.speakers,
            wished=instruction is not None,
        )
        try:
            answer = await ask_model(
                inquiry, build, SCENE_PROFILE, material, answer_tokens=SCENE_TOKENS, temperature=TEMPERATURE
            )
        except DoesNotFit:
            if len(part) == 1:
                raise
            waiting.extendleft(reversed(part_evenly(part, (len(part) + 1) // 2)))
            continue
        scene_recaps.append(answer.value)
        made_by = answer.model
        made.append(ScenePart(part[-1].seq, answer.value, answer.model, len(inquiry.refusals)))
        inquiry.count_from(made[-1].refused)
        if keep is not None and (waiting or len(made) > 1):
            await keep(replace(parts, parts=made))
    whole = scene_recaps[0] if len(scene_recaps) == 1 else await _join(inquiry, join_prompt, scene_recaps, source)
    return whole, made_by, prompt.version


def _leave_out(parts: Sequence[Sequence[Utterance]], until_seq: int) -> list[Sequence[Utterance]]:
    """Remove the messages up to `until_seq` from the parts; return the parts that still have messages."""
    left = ([one for one in part if one.seq > until_seq] for part in parts)
    return [part for part in left if part]


def part_evenly(said: Sequence[Utterance], most: int) -> list[Sequence[Utterance]]:
    """Split `said` into as few parts of at most `most` messages as possible; their lengths differ by at most one."""
    count = -(-len(said) // most)
    ends = [len(said) * number // count for number in range(count + 1)]
    return [said[first:last] for first, last in pairwise(ends)]


def _scene_messages(
    prompt: PromptTemplate,
    source: Source,
    said: Sequence[Utterance],
    former: str,
    instruction: str | None,
    budget_tokens: int,
) -> list[ChatMessage]:
    """Build the request for the recap of `said`, a part of `source`. Raises DoesNotFit."""
    zone = ZoneInfo(source.time_zone)
    return scene_recap_messages(
        said,
        former=former,
        times={one.seq: f"{source.sent_at[one.seq].astimezone(zone):%Y-%m-%d %H:%M}" for one in said},
        characters=source.names,
        user_name=source.user_name,
        language=source.language,
        instruction=instruction,
        prompt=prompt,
        budget_tokens=budget_tokens,
        count_tokens=count_tokens,
    )


async def _join(
    inquiry: Inquiry, prompt: PromptTemplate, scene_recaps: Sequence[SceneText], source: Source
) -> SceneText:
    """Fold the recaps of a scene's parts into one, as the running recap is folded: settled threads are dropped."""
    joined = ""
    for first in range(0, len(scene_recaps), MOST_SCENES):
        parts = [SceneRecap(None, render_recap(part)) for part in scene_recaps[first : first + MOST_SCENES]]
        draft = await ask_for_recap(
            inquiry, prompt, joined, parts, user_name=source.user_name, language=source.language
        )
        joined = draft.text
    return replace(parse_scene_recap(joined), title=scene_recaps[-1].title)


async def ask_for_recap(
    inquiry: Inquiry,
    prompt: PromptTemplate,
    former: str,
    scenes: Sequence[SceneRecap],
    *,
    user_name: str | None,
    language: str | None,
) -> FoldDraft:
    """Return the running recap `former` with `scenes` folded in."""

    def build(budget_tokens: int) -> list[ChatMessage]:
        return recap_messages(
            former,
            scenes,
            user_name=user_name,
            language=language,
            prompt=prompt,
            budget_tokens=budget_tokens,
            count_tokens=count_tokens,
        )

    material = Material([scene.recap for scene in scenes], former, language=language)
    answer = await ask_model(
        inquiry, build, RECAP_PROFILE, material, answer_tokens=RECAP_TOKENS, temperature=TEMPERATURE
    )
    return FoldDraft(answer.value, "model", answer.model, prompt.version)
