"""The command line interface: `memobook COMMAND`.

Only the module of the given command is imported, so that the API does not load the demo's dependencies.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from types import ModuleType

from app.kit.errors import AppError
from app.kit.settings import SettingsError
from app.local.errors import LocalError

COMMANDS = {
    "up": "run everything: API, worker and, unless configured, PostgreSQL and Valkey",
    "demo": "play a conversation and show the memory made from it",
    "eval": "make the memory of a conversation with the configured model, and show how well it did",
    "api": "run only the API",
    "worker": "run only a worker",
    "migrate": "migrate the database schema to the latest version",
    "reindex": "change to the configured embedding model, or apply changes of an exported vault to its chat",
    "doctor": "check every part of the installation, and say what to do",
    "healthcheck": "check whether one worker still reports, for a supervisor",
    "export": "write a chat to a file or a folder",
    "import": "make a chat from a file or a folder",
    "keys": "create, list and revoke keys",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. An error is printed as one line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="memobook", description="The memory service behind companion chat.")
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    for name, help_text in COMMANDS.items():
        command = commands.add_parser(name, help=help_text, description=help_text)
        if given[:1] == [name]:
            module = _import_command(name)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    options = parser.parse_args(given)
    try:
        return int(options.run(options))
    except (SettingsError, LocalError, AppError) as error:  # each has a message of one line
        print(f"memobook: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _import_command(name: str) -> ModuleType:
    """Import a command's module, and exclude it and all that it imports from garbage collections.

    Garbage collections would take about a sixth of the time of the import, and the first one after the import 0.2 s. An
    import leaves hardly any garbage.
    """
    collects = gc.isenabled()
    path = f"app.commands.{name}_" if iskeyword(name) else f"app.commands.{name}"
    is_new = path not in sys.modules
    gc.disable()
    try:
        return import_module(path)
    finally:
        if is_new:
            gc.freeze()
        if collects:
            gc.enable()


if __name__ == "__main__":
    sys.exit(main())
