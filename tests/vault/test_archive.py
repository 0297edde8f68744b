"""A zip that could harm is refused with one line, before it is read."""

import io
import random
import struct
import zipfile
from collections.abc import Callable

import pytest

from app.vault.archive import MAX_BYTES, STATE, open_vault
from app.vault.errors import InvalidVault
from tests.vault.vaults import zip_of

_ONE = {STATE: b"{}\n"}
_ZIP64_LOCATOR = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)


def _named(name: str, **info: int) -> bytes:
    """A zip with one more entry of this name."""
    file = io.BytesIO(zip_of(_ONE))
    with zipfile.ZipFile(file, "a") as archive:
        entry = zipfile.ZipInfo(name)
        for attribute, value in info.items():
            setattr(entry, attribute, value)
        archive.writestr(entry, b"x")
    return file.getvalue()


def _with_comment() -> bytes:
    file = io.BytesIO(zip_of(_ONE))
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"hello"
    return file.getvalue()


def _sized(size: int) -> bytes:
    """A zip whose directory says that its only entry has this size."""
    made = bytearray(zip_of(_ONE))
    at = made.index(b"PK\1\2") + 24
    made[at : at + 4] = struct.pack("<L", size)
    return bytes(made)


def _overlapping() -> bytes:
    """A zip whose two entries are the same bytes."""
    made = bytearray(zip_of(_ONE | {"b.md": b"{}\n"}))
    second = made.index(b"PK\1\2", made.index(b"PK\1\2") + 4)
    made[second + 42 : second + 46] = struct.pack("<L", 0)
    return bytes(made)


def _changed(header: bytes, offset: int, value: int) -> bytes:
    """A zip with another two-byte field in the header of its only entry, `PK\3\4` or that of the directory."""
    made = bytearray(zip_of(_ONE))
    at = made.index(header) + offset
    made[at : at + 2] = struct.pack("<H", value)
    return bytes(made)


def _flagged(flag: int) -> bytes:
    return _changed(b"PK\1\2", 8, flag)


def _misnamed() -> bytes:
    """A zip whose only entry has, in its own header, a name that says that it is UTF-8 but is not."""
    made = bytearray(_changed(b"PK\3\4", 6, 0x800))
    made[made.index(STATE.encode())] = 0xFF
    return bytes(made)


def _read(file: bytes) -> None:
    """Read all of a zip, as an import does."""
    vault = open_vault(io.BytesIO(file))
    vault.check()
    list(vault.read_lines(STATE))


def _latin() -> bytes:
    """A name outside of ASCII that does not say that it is UTF-8."""
    made = bytearray(_named("caf\xe9.md"))
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = made.rindex(signature) + offset
        made[at : at + 2] = struct.pack("<H", 0)
    return bytes(made)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"", "not a whole zip"),
        (lambda: b"PK" + b"x" * 100, "not a whole zip"),
        (lambda: zip_of(_ONE)[:-1], "not a whole zip"),
        (lambda: zip_of(_ONE)[10:], "damaged"),
        (lambda: b"#!/bin/sh\n" + zip_of(_ONE), "damaged"),
        (_with_comment, "whole zip"),
        (lambda: zip_of(_ONE)[:-22] + _ZIP64_LOCATOR + zip_of(_ONE)[-22:], "at most 10,000 entries"),
        (lambda: zip_of({"a.md": b""}), "has no file 'state.json'"),
        (lambda: zip_of({"a/state.json": b"", "b/state.json": b""}), "has no file 'state.json'"),
        (lambda: zip_of(_ONE | {f"{n}": b"" for n in range(10_000)}), "too many entries"),
        (lambda: zip_of(_ONE | {f"{n:02000}": b"" for n in range(2_200)}), "a directory of 4 MiB"),
        (lambda: _named("../evil.md"), "not a relative path"),
        (lambda: _named("/etc/passwd"), "not a relative path"),
        (lambda: _named("a//b.md"), "not a relative path"),
        (lambda: _named("C:evil.md"), "not a relative path"),
        (lambda: _named("a\\..\\evil.md"), "not a relative path"),
        (lambda: _named("a\nb.md"), "not a relative path"),
        (lambda: _named("STATE.json"), "twice"),
        (lambda: _named("link", external_attr=0o120777 << 16), "is a link"),
        (lambda: _named("pipe", external_attr=0o010644 << 16), "is a link"),
        (lambda: _named("packed", compress_type=zipfile.ZIP_BZIP2), "unknown compression"),
        (lambda: _flagged(1), "encrypted"),
        (lambda: _changed(b"PK\1\2", 6, 99), "directory cannot be read"),
        (lambda: _latin(), "UTF-8"),
        (lambda: _sized(MAX_BYTES + 1), "at most 1,073,741,824"),
        (lambda: _sized(MAX_BYTES), "more than 200 times"),
        (_overlapping, "overlap"),
    ],
)
def test_a_zip_that_could_harm_is_refused(make: Callable[[], bytes], words: str) -> None:
    with pytest.raises(InvalidVault, match=words) as refused:
        open_vault(io.BytesIO(make()))
    assert "\n" not in str(refused.value)


def test_a_highly_compressible_vault_is_accepted() -> None:
    vault = open_vault(io.BytesIO(zip_of(_ONE | {"big.md": b"a" * 20_000_000})))
    assert vault.list_names() == ["big.md", STATE]


def test_an_entry_is_read_no_further_than_its_size() -> None:
    """A directory that names a smaller size than the entry has, or another checksum."""
    vault = open_vault(io.BytesIO(_sized(1)))
    with pytest.raises(InvalidVault, match=r"state\.json: the file in the zip is damaged"):
        list(vault.read_lines(STATE))


@pytest.mark.parametrize("make", [lambda: _flagged(0x20), _misnamed], ids=["patched", "misnamed"])
def test_an_entry_that_zipfile_cannot_read_is_refused(make: Callable[[], bytes]) -> None:
    with pytest.raises(InvalidVault, match=r"state\.json: the file in the zip is damaged"):
        _read(make())


def test_a_zip_with_changed_bytes_is_read_or_refused() -> None:
    """No error of `zipfile` is left over."""
    chance, refused = random.Random(1), 0
    made = zip_of(_ONE | {"caf\xe9.md": b"Hello.\n"})
    for _ in range(1_000):
        changed = bytearray(made)
        for _ in range(chance.choice((1, 1, 2, 4))):
            changed[chance.randrange(len(made))] = chance.choice((0, 1, 0x20, 0x7F, 0xFF, chance.randrange(256)))
        try:
            _read(bytes(changed))
        except InvalidVault:
            refused += 1
    assert 0 < refused < 1_000


def test_a_folder_around_all_files_is_ignored() -> None:
    vault = open_vault(io.BytesIO(zip_of({"my vault/state.json": b"1\n2\n", "my vault/a.md": b"", "__MACOSX/x": b""})))
    assert vault.list_names() == ["a.md", "state.json"]
    assert list(vault.read_lines(STATE)) == [b"1\n", b"2\n"]


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InvalidVault, match=r"has no file 'MEMORY\.md'"):
        list(open_vault(io.BytesIO(zip_of(_ONE))).read_lines("MEMORY.md"))
