import re
import sys
from pathlib import Path

import pytest
from rs_bpe import bpe

from app.kit.tokens import count_tokens, release_tables

LINUX_ONLY = "only Linux tells which pages are held"


def held_kb(path: str) -> int:
    """The memory that this process holds of a mapped file."""
    held, counts = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            counts = line.endswith(path)
        elif counts and line.startswith("Rss:"):
            held += int(line.split()[1])
    return held


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)
def test_tokenizer_tables_are_not_kept_resident_nor_reloaded() -> None:
    release_tables(bpe.__file__)
    assert count_tokens("Kai keeps the brass key. 鍵 🗝️") == 13
    assert held_kb(bpe.__file__) < 8_000


def test_releasing_a_file_that_is_not_mapped_is_harmless() -> None:
    release_tables("/nowhere/at/all.so")
