"""The release that `make check-upgrade` runs is found in the history, or one line says how to get it."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.upgrade.former import ROOT, FormerReleaseError, read_commit, unpack


def make_repository(folder: Path) -> str:
    """Make a repository with one commit and return the commit."""
    (folder / "app").mkdir()
    (folder / "app" / "cli.py").write_text("former")
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "former")):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_file_names_one_commit(tmp_path: Path) -> None:
    assert re.fullmatch("[0-9a-f]{40}", read_commit())
    (tmp_path / "named").write_text("# A comment.\n\nabc\n")
    assert read_commit(tmp_path / "named") == "abc"


def test_a_commit_is_unpacked_as_it_was(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    commit = make_repository(source).strip()
    (source / "app" / "cli.py").write_text("present")
    unpack(commit, target, source)
    assert (target / "app" / "cli.py").read_text() == "former"


def test_a_missing_commit_says_what_to_do(tmp_path: Path) -> None:
    make_repository(tmp_path)
    with pytest.raises(FormerReleaseError) as caught:
        unpack("0" * 40, tmp_path / "target", tmp_path)
    assert str(caught.value) == (
        "commit 000000000000 of tests/upgrade/FORMER_RELEASE is not in this clone: run `git fetch --unshallow`"
    )


def test_the_workflow_checks_it_with_the_whole_history() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    jobs = [job["steps"] for job in workflow["jobs"].values() if {"run": "make check-upgrade"} in job["steps"]]
    (checkout,) = [step for steps in jobs for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkout["with"]["fetch-depth"] == 0
