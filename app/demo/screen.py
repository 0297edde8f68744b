"""The output of the demo: lines and, on a terminal, a progress line that is updated in place."""

import shutil
from typing import TextIO

_STEPS = 10
"""The number of times that progress is printed if the output is not a terminal."""


class Screen:
    """Writes lines and progress to `out`, without buffering."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._changes = out.isatty()
        self._is_open = False
        self._reported = 0

    def say(self, line: str) -> None:
        """Write a line that stays."""
        self._write(f"\n{line}\n" if self._is_open else f"{line}\n")
        self._is_open = False

    def show(self, done: int, total: int, line: str) -> None:
        """Show `line` as the progress after `done` of `total` steps."""
        if self._changes:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[2K{line[:width]}")
            self._is_open = True
        elif done * _STEPS // total > self._reported:
            self._reported = done * _STEPS // total
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
