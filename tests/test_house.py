"""What the house promises about itself, read from its own files."""

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
APP = ROOT / "app"
MODULES = sorted(APP.rglob("*.py"))
MAX_LINES = 400

VALUES = {"orjson", "pydantic", "pydantic_core"}
"""What a pure module may import beyond the standard library: types for values, and their JSON."""

ARITHMETIC = {"app.kit.tokens"}
"""What else it may import of ours: the memory of counts in it makes answers faster, never different."""

OUTSIDE = {"asyncio", "io", "os", "pathlib", "random", "secrets", "socket", "subprocess", "time", "urllib"}
"""Where the standard library leaves pure thinking: files, network, clock, chance."""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _imports(path: Path) -> Iterator[str]:
    """The dotted names of the modules that a module imports."""
    for node in ast.walk(ast.parse(_text(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            is_package = (ROOT / node.module.replace(".", "/")).is_dir()
            yield from ((f"{node.module}.{a.name}" for a in node.names) if is_package else [node.module])


def _is_pure(path: Path) -> bool:
    """A module says that it is pure in the first line of its docstring."""
    docstring = ast.get_docstring(ast.parse(_text(path))) or ""
    return docstring.partition("\n")[0].endswith(" Pure.")


def _kept_files() -> Iterator[Path]:
    """All files that belong to the repository: none that a tool or a run has made."""
    made = {"__pycache__", "build", ".git", ".venv", ".data"}
    for parent, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in made and not name.endswith(("_cache", ".egg-info"))]
        yield from (Path(parent, name) for name in names if name != ".env")


PURE = [path for path in MODULES if _is_pure(path)]


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_file_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(_text(path).splitlines()) <= MAX_LINES


def test_no_file_is_named_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
    assert [_name(path) for path in MODULES if {path.stem, path.parent.name} & vague] == []


def test_there_is_one_committer() -> None:
    assert [_name(path) for path in MODULES if re.search(r"\.commit\(|\bCOMMIT\b\"", _text(path))] == ["app/kit/db.py"]


def test_only_the_worker_and_its_bell_know_arq() -> None:
    knowing = {_name(path) for path in MODULES if "arq" in {name.partition(".")[0] for name in _imports(path)}}
    assert knowing <= {"app/worker.py", "app/kit/worker_notifier.py"}


def test_what_thinks_is_declared_pure() -> None:
    thinking = {
        "characters",
        "cut",
        "eligibility",
        "hashes",
        "highlights",
        "extractive",
        "transcript",
        "segments",
        "budget",
    }
    assert {path.stem for path in MODULES if path.stem in thinking} <= {path.stem for path in PURE}


@pytest.mark.parametrize("path", PURE, ids=_name)
def test_a_pure_module_imports_nothing_that_acts(path: Path) -> None:
    for module in _imports(path):
        package = module.partition(".")[0]
        if package == "app":
            assert module in ARITHMETIC or _is_pure(ROOT / f"{module.replace('.', '/')}.py"), module
        else:
            assert package in (sys.stdlib_module_names | VALUES) - OUTSIDE, module


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=_name)
def test_no_test_sleeps_or_patches(path: Path) -> None:
    # sleep(0) only lets others run. What plays a slow model may sleep; a test that waits for it may not.
    assert re.findall(r"\b(?:time|asyncio|anyio)\.sleep\((?!0\))", _text(path)) == []
    assert re.findall(r"\bmonkeypatch\.(?:setattr|delattr|setitem)", _text(path)) == []
    assert not {"mock", "unittest.mock"} & set(_imports(path))


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=_name)
def test_a_lock_names_hashes_and_no_addresses(path: Path) -> None:
    text = _text(path)
    assert "://" not in text
    assert "--index-url" not in text
    pins = re.findall(r"^[\w.\[\]-]+==", text, re.MULTILINE)
    hashed = re.findall(r"^[\w.\[\]-]+==.*\\\n    --hash=sha256:", text, re.MULTILINE)
    assert 0 < len(pins) == len(hashed)


def test_no_file_names_a_package_registry() -> None:
    hosts = [
        ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))
    ]
    naming = [
        f"{_name(path)}: {host}" for path in _kept_files() for host in hosts if host.encode() in path.read_bytes()
    ]
    assert naming == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs/adr").glob("*.md")), ids=_name)
def test_a_decision_has_its_four_parts(path: Path) -> None:
    title, *_ = text = _text(path).splitlines()
    assert title.startswith(f"# {path.name[:4]} ")
    parts = [line.removeprefix("## ") for line in text if line.startswith("## ")]
    assert parts == ["Context", "Decision", "Rejected", "Consequences"]


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs/adr").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_what_the_readme_and_the_gate_run_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", _text(ROOT / "Makefile"), re.MULTILINE))
    shown = "\n".join(_text(path) for path in (ROOT / "README.md", ROOT / ".ci/run") if path.is_file())
    # A command stands at the start of a line or in backticks; "to make sure" is prose.
    assert set(re.findall(r"(?:^\s*|`)make ([a-z]+)", shown, re.MULTILINE)) <= targets


def test_links_in_the_papers_lead_somewhere() -> None:
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", _text(path)):
            assert (path.parent / target).exists(), f"{_name(path)}: {target}"
