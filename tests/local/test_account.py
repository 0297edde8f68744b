import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.local.account import Account, accounts, choose_account, obstacle
from app.local.errors import LocalError
from tests.conftest import PROJECT
from tests.local.conftest import SOMEBODY, as_root, with_namespaces

ROOT = Account("self", 0, 0)
ALICE = Account("self", 1000, 1000)
NOBODY = Account("user", 65_534, 65_534)


def test_a_user_runs_postgresql_as_itself() -> None:
    assert accounts(ALICE, owner=None) == (ALICE,)
    assert accounts(ALICE, owner=1000) == (ALICE,)


def test_a_user_cannot_use_the_files_of_another() -> None:
    with pytest.raises(LocalError, match="belong to the user root"):
        accounts(ALICE, owner=0)


def test_root_runs_postgresql_as_the_owner_of_the_files() -> None:
    assert accounts(ROOT, owner=54_321) == (Account("user", 54_321, 54_321),)


def test_root_is_another_user_before_it_goes_by_its_name() -> None:
    outside, inside = accounts(ROOT, owner=None)
    assert (outside.kind, inside.kind) == ("user", "namespace")
    assert outside.uid == inside.uid != 0
    assert accounts(ROOT, owner=0) == (inside,)


@as_root
def test_the_first_directory_that_a_user_may_not_enter_is_named(open_folder: Path) -> None:
    home, deep = open_folder / "home", open_folder / "home/project/data"
    deep.mkdir(parents=True)
    assert obstacle(NOBODY, [deep]) is None
    home.chmod(0o700)
    (home / "project").chmod(0o700)
    assert obstacle(NOBODY, [open_folder, deep]) == f"the user nobody may not enter {home}"


@with_namespaces
def test_a_namespace_reaches_directories_of_root(tmp_path: Path) -> None:
    assert obstacle(NOBODY, [tmp_path]) is not None
    assert choose_account(tmp_path / "postgres", [tmp_path]).kind == "namespace"


@with_namespaces
def test_a_namespace_does_not_reach_files_of_other_users(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY.uid, NOBODY.gid)
    assert obstacle(SOMEBODY, [tmp_path]) == f"the user root may not enter {tmp_path}"


@as_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="asks for util-linux")
def test_forbidden_namespaces_are_an_error_naming_the_directory(open_folder: Path) -> None:
    (open_folder / "home").mkdir(mode=0o700)
    script = (
        "import sys; from pathlib import Path; from app.local.account import choose_account\n"
        "try: choose_account(Path(sys.argv[1], 'postgres'), [Path(sys.argv[1])])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    # Without this capability even root may not map itself into a user namespace.
    answer = subprocess.run(
        [
            *("setpriv", "--bounding-set=-setfcap", "--inh-caps=-setfcap"),
            *(sys.executable, "-c", script, str(open_folder / "home")),
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.startswith("LocalError PostgreSQL does not run as root, and the user ")
    assert answer.stdout.endswith(f" may not enter {open_folder / 'home'}\n")


@as_root
def test_files_that_their_user_cannot_reach_are_not_taken_over(tmp_path: Path) -> None:
    files = tmp_path / "postgres"
    files.mkdir()
    os.chown(files, 65_534, 65_534)
    with pytest.raises(LocalError, match="and the user nobody may not enter /"):
        choose_account(files, [tmp_path])
