"""memobook doctor: check every part of the installation, and print what to do about each fault."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path

import orjson

from app.commands.api import LOOPBACK
from app.commands.arguments import add_data, say
from app.commands.prompts import load_prompt_set
from app.doctor.examine import Installation, examine
from app.doctor.finding import Finding
from app.kit.clock import system_clock
from app.kit.settings import Settings, SettingsError, load_settings
from app.local.directory import DataDirectory
from app.local.errors import LocalError
from app.local.running import find_running


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the installation and the output."""
    add_data(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address that the API listens on, which decides whether a key is needed"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> int:
    """Run all checks and print what they found. Returns 1 if there is a fault."""
    try:
        settings = load_settings()
        load_prompt_set(settings)
        installation = _find_installation(settings, options.data, options.host)
    except (SettingsError, LocalError) as error:
        found = [Finding("settings", "fault", str(error), "Correct it, then run memobook doctor again.")]
    else:
        found = asyncio.run(examine(settings, installation, system_clock))
    has_faults = any(finding.state == "fault" for finding in found)
    if options.json:
        document = {"status": "fault" if has_faults else "ok", "checks": [asdict(finding) for finding in found]}
        say(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(found)
    return 1 if has_faults else 0


def _find_installation(settings: Settings, data: Path, host: str) -> Installation:
    """Return the locations of the servers: the configured ones, or else those that `memobook up` has started."""
    running = None if settings.database_url and settings.redis_url else find_running(data)
    is_public = host not in LOOPBACK
    configured = settings.sqlalchemy_url if settings.database_url else None
    if running is None:
        return Installation(configured, settings.redis_url, data=None, is_public=is_public)
    return Installation(
        configured or running.database_url,
        settings.redis_url or running.redis_url,
        data=None if configured else DataDirectory(data).postgres,
        is_public=is_public,
    )


def _print(found: list[Finding]) -> None:
    for finding in found:
        say(f"{finding.state:<8} {finding.check:<12} {finding.message}")
        if finding.advice:
            say(f"{'':<21} → {finding.advice}")
