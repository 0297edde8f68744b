"""Installs the release that `FORMER_RELEASE` names, from the history of this repository."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = Path(__file__).with_name("FORMER_RELEASE")
LOCK = "requirements.lock"
_INSTALL_S = 900


class FormerReleaseError(Exception):
    """The former release cannot be installed; the text is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Program:
    """A Python that imports one release of the service.

    Attributes:
        python: The interpreter.
        environment: The variables that select the release.

    """

    python: Path
    environment: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of `memobook …`."""
        return [str(self.python), "-m", "app.cli", *arguments]


PRESENT = Program(Path(sys.executable), {"PYTHONPATH": str(ROOT)})
"""The service as it is in this directory."""


def read_commit(path: Path = NAMED) -> str:
    """Return the commit that a file names, in its only line that is not a comment."""
    (commit,) = (line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return commit


def unpack(commit: str, folder: Path, repository: Path = ROOT) -> None:
    """Write the files of a commit into the directory `folder`. Raises FormerReleaseError if the commit is not here."""
    done = subprocess.run(["git", "archive", commit], cwd=repository, capture_output=True, check=False)
    if done.returncode:
        raise FormerReleaseError(
            f"commit {commit[:12]} of {NAMED.relative_to(ROOT)} is not in this clone: run `git fetch --unshallow`"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def install(folder: Path, source: Path) -> Program:
    """Install the release in `source` into `folder`, with the packages of its own lock file. Raises FormerReleaseError.

    If its lock file is that of this repository, the packages of the present environment are used.
    """
    wheels, target = folder / "wheels", folder / "packages"
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(source))
    (wheel,) = wheels.glob("memobook-*.whl")
    _pip("install", "--no-deps", "--target", str(target), str(wheel))
    if (source / LOCK).read_bytes() == (ROOT / LOCK).read_bytes():
        python = Path(sys.executable)
    else:
        python = folder / "venv" / "bin" / "python"
        _run([sys.executable, "-m", "venv", str(folder / "venv")])
        _pip("install", "--require-hashes", "-r", str(source / LOCK), python=python)
    return Program(python, {"PYTHONPATH": str(target)})


def _pip(*arguments: str, python: Path = Path(sys.executable)) -> None:
    _run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments])


def _run(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise FormerReleaseError(f"{' '.join(command[1:4])} failed: {last}")
