"""`memobook demo`: runs the whole service, plays a conversation into it over HTTP, and shows the result."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import httpx

from app.chats.settings import ChatSettings, schema
from app.consolidation.settings import ConsolidationSettings
from app.demo.access import access
from app.demo.api import Api
from app.demo.errors import DemoError
from app.demo.presets import PRESETS, apply_preset
from app.demo.replay import Played, play
from app.demo.result import word_result
from app.demo.screen import Screen
from app.demo.tool_calls import BLOCK_TOOL, DIARY_TOOL, FACT_TOOL, ToolCall, take_calls
from app.demo.words import count, fill, join_words
from app.diary.settings import DiarySettings
from app.embeddings.configured import is_installed
from app.kit.settings import LOCAL_EMBEDDINGS, PREFIX, Settings
from app.local.stack import Stack
from app.local.up import until_signal
from app.transfer.formats import read_transcript
from app.transfer.transcript import Transcript, TranscriptError

CONVERSATION = Path(__file__).with_name("conversation.jsonl")

QUESTION = "strolling barefoot at the seaside"
"""The query for recall in the demo's own conversation. No message has any form of `stroll`, `barefoot` or `seaside`."""

_TIMEOUT_S = 30.0


def add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `memobook demo` besides the data directory and the address."""
    parser.add_argument(
        "--input",
        type=Path,
        default=CONVERSATION,
        metavar="FILE",
        help="play another conversation: a JSONL file of messages, or a SillyTavern chat",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help=f"preset of the chat: {', '.join(PRESETS)} (default: the preset in the conversation, or memo)",
    )
    parser.add_argument(
        "--ask",
        metavar="TEXT",
        help=f"show what recall finds for a question (default, for the demo's own conversation: {QUESTION})",
    )
    parser.add_argument("--once", action="store_true", help="exit after showing the result instead of serving")


async def run_demo(options: argparse.Namespace, settings: Settings) -> int:
    """Run the demo until it ends or a signal arrives; return the exit code. Raises DemoError, LocalError, AppError."""
    transcript = read_input(options.input, options.preset)
    screen = Screen(sys.stdout)
    with until_signal(screen.say):
        screen.say(f"Starting the service on {options.data} …")
        async with _stack(options, settings, screen) as stack:
            question = options.ask or (QUESTION if options.input == CONVERSATION else None)
            chat = await _play_and_show(stack, settings, transcript, screen, question)
            if not options.once:
                screen.say(f"\nThe chat is at {stack.url}{chat}, the API documentation at {stack.url}/docs.")
                screen.say("Press Ctrl-C to stop.")
                await asyncio.Event().wait()
    return 0


def read_input(path: Path, preset: str | None = None) -> Transcript:
    """Return the conversation in a file, with `preset` if it is given. Raises DemoError."""
    try:
        transcript = read_transcript(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DemoError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DemoError(f"{path}: not UTF-8 at byte {error.start}") from None
    except TranscriptError as error:
        raise DemoError(f"{path}: {error}") from None
    if len(transcript.messages) == len(transcript.hidden):
        raise DemoError(f"{path}: contains no messages to play")
    return replace(transcript, chat=apply_preset(transcript.chat, preset)) if preset else transcript


def _stack(options: argparse.Namespace, settings: Settings, screen: Screen) -> Stack:
    return Stack(
        options.data,
        database_url=settings.database_url,
        redis_url=settings.redis_url,
        host=options.host,
        port=options.port,
        # A replay has no edits to wait for, and log lines would disturb the output.
        environment={"MEMOBOOK_SETTLE_S": "0", "MEMOBOOK_LOG_LEVEL": "warning"} | _choose_embeddings(settings),
        say=screen.say,
    )


def _choose_embeddings(settings: Settings) -> dict[str, str]:
    """Return the setting of the local embedding model, if it is installed and no other one is configured."""
    is_local = settings.embeddings_base_url is None and is_installed()
    return {f"{PREFIX}EMBEDDINGS_BASE_URL": LOCAL_EMBEDDINGS} if is_local else {}


async def _play_and_show(
    stack: Stack, settings: Settings, transcript: Transcript, screen: Screen, question: str | None
) -> str:
    """Play the conversation, print the result, and return the path of the chat."""
    reached = settings.model_copy(update={"database_url": stack.urls.database_url})
    async with (
        access(reached) as key,
        httpx.AsyncClient(
            base_url=stack.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=_TIMEOUT_S,
            trust_env=False,  # proxy settings of the environment do not apply to loopback
        ) as client,
    ):
        api = Api(client)
        chat = await _find_free_chat(api)
        made = schema().whole.model_validate((await api.put(chat, transcript.chat))["settings"])
        played = await _play(api, chat, transcript, made, screen)
        for line in await word_result(api, chat, await api.get(chat), made, played, question):
            screen.say(line)
    return chat


async def _find_free_chat(api: Api) -> str:
    """Return the path of a chat that does not exist yet, so that every run starts with an empty chat."""
    chat, number = "/v1/chats/demo", 1
    while await api.exists(chat):
        number += 1
        chat = f"/v1/chats/demo-{number}"
    return chat


async def _play(api: Api, chat: str, transcript: Transcript, settings: ChatSettings, screen: Screen) -> Played:
    hidden = set(transcript.hidden)
    shown = take_calls([message for message in transcript.messages if message["id"] not in hidden])
    moments = [one for one in shown if not isinstance(one, ToolCall) or _is_shown(one, settings)]
    calls = Counter(one.tool for one in moments if isinstance(one, ToolCall))
    total = len(moments) - calls.total()
    left_out = f" ({len(hidden)} hidden left out)" if hidden else ""
    screen.say(f"Playing {total} messages{left_out} into the chat {chat.rpartition('/')[2]} …")
    for line in _word_manner(calls, has_model=(await api.get("/readyz"))["model"] == "configured"):
        screen.say(line)

    def report(played: Played) -> None:
        done, last = len(played.times), played.account.last
        tokens = f" · the context has {last.tokens:,} tokens" if last else ""
        screen.show(done, total, f"  {done:>5,} messages{tokens}")

    played = await play(api, chat, moments, report)
    if played.late:
        screen.say(f"Background work was late, so the rest was played without waiting for it: {played.late}")
    return played


def _is_shown(call: ToolCall, settings: ChatSettings) -> bool:
    """Return whether the result shows what the call writes. It shows facts and blocks with what is learnt."""
    section = DiarySettings if call.tool == DIARY_TOOL else ConsolidationSettings
    return section.of(settings).enabled


def _word_manner(calls: Mapping[str, int], *, has_model: bool) -> Iterator[str]:
    """Yield notes about special conditions of this replay. `calls` are the numbers of tool calls, by tool."""
    deeds = []
    if entries := calls.get(DIARY_TOOL, 0):
        deeds.append(f"write {count(entries, 'diary entry', 'diary entries')}")
    if facts := calls.get(FACT_TOOL, 0):
        deeds.append(f"set facts {count(facts, 'time')}")
    if edits := calls.get(BLOCK_TOOL, 0):
        deeds.append(f"edit their core memory {count(edits, 'time')}")
    if deeds:
        tools = "tool" if len(deeds) == 1 else "tools"
        yield fill(f"The characters {join_words(deeds)} as they go, with the {tools} that a model would call.", 0)
    if not has_model:
        yield "No model is configured (MEMOBOOK_LLM_BASE_URL), so the memory consists of quotes from the messages."
