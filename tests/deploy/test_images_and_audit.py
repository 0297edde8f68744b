"""`make pin-images` and the audit of the CI workflow, with programs in place of `docker`, `curl` and `pipx`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
(AUDIT,) = (step["run"] for step in WORKFLOW["jobs"]["audit"]["steps"] if step.get("name") == "audit")
DIGEST = "sha256:" + "0123456789abcdef" * 4


def program(folder: Path, name: str, script: str) -> None:
    """Put a program into a folder of the search path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{folder}:/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of the files that name images."""
    for name in ("docker-compose.yml", "Dockerfile"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def pin(files: Path) -> subprocess.CompletedProcess[str]:
    return run(files, sys.executable, str(ROOT / "deploy/pin_images.py"), str(files))


def test_every_foreign_image_gets_its_digest(files: Path) -> None:
    program(files, "docker", f'echo "$6" >> asked; echo {DIGEST}')
    assert pin(files).returncode == 0
    services = yaml.safe_load((files / "docker-compose.yml").read_text())["services"]
    images = {name: service["image"] for name, service in services.items()}
    foreign = {image for image in images.values() if image != "memobook"}
    assert len(foreign) == 3
    assert all(image.endswith(f"@{DIGEST}") for image in foreign)
    assert (files / "Dockerfile").read_text().count(f"python:3.13.14-slim@{DIGEST}") == 2
    assert {image.split("@")[0] for image in foreign} < set((files / "asked").read_text().split())
    pinned = (files / "docker-compose.yml").read_text()
    assert pin(files).returncode == 0
    assert (files / "docker-compose.yml").read_text() == pinned, "digests are replaced, not added"


@pytest.mark.parametrize("script", ["exit 1", "echo unexpected"])
def test_without_a_registry_nothing_is_changed(files: Path, script: str) -> None:
    program(files, "docker", script)
    done = pin(files)
    assert done.returncode == 1
    assert done.stderr.startswith("pin-images: nothing is changed: no digest of ")
    assert done.stderr.count("\n") == 1
    for name in ("docker-compose.yml", "Dockerfile"):
        assert (files / name).read_text() == (ROOT / name).read_text()


@pytest.mark.parametrize("curl", ["exit 7", "echo '{}'"])
def test_an_audit_without_advisories_says_so(tmp_path: Path, curl: str) -> None:
    program(tmp_path, "curl", curl)
    program(tmp_path, "pipx", "echo audited")
    done = run(tmp_path, "sh", "-ec", AUDIT)
    assert (done.returncode, done.stdout) == (
        0,
        "::warning::not audited: the advisory service does not answer\n",
    )


@pytest.mark.parametrize("code", [0, 1])
def test_an_audit_with_advisories_decides(tmp_path: Path, code: int) -> None:
    program(tmp_path, "curl", """echo '{"vulns": []}'""")
    program(tmp_path, "pipx", f'echo "$@"; exit {code}')
    done = run(tmp_path, "sh", "-ec", AUDIT)
    assert done.returncode == code
    assert "--strict" in done.stdout
    assert "--requirement requirements.lock" in done.stdout


def test_only_the_workflow_audits() -> None:
    assert "pip-audit" not in (ROOT / "Makefile").read_text()
