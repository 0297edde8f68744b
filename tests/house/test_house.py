"""The repository's own rules, checked on its files."""

import ast
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

import pytest

from app.kit.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "app").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MORE = sorted(path for folder in ("alembic", "bench") for path in (ROOT / folder).rglob("*.py"))
MAX_LINES = 400
MAX_MODULES = 28
MAX_TEST_NAME = 59

STANDARD = {
    *("bisect", "collections", "dataclasses", "datetime", "email", "enum", "functools", "hashlib", "heapq"),
    *("ipaddress", "itertools", "json", "logging", "math", "operator", "re", "textwrap", "typing", "uuid", "zoneinfo"),
    "unicodedata",  # the properties of characters
}
"""The modules of the standard library that a pure module may import: none for files, network, time or randomness."""

VALUES = {"orjson", "pydantic", "pydantic_core"}
"""The other packages that a pure module may import: types for values, and their JSON."""

ARITHMETIC = {"app.kit.tokens", "app.layers.text_cache"}
"""Modules of ours that a pure module may import although they cache: the cache changes the speed, not the result."""

OF_MESSAGES = re.compile(
    r"\b(?:FROM|JOIN|UPDATE|INTO|USING)\s+(?:ONLY\s+)?messages\b|,\s*messages\s+(?:AS\s+)?m\b"
    r"|\b(?:select|insert|update|delete)\(Message\b"
)
"""SQL that reads or writes the table `messages`."""

JOINED_WITH_MESSAGES = {
    "app/bindings/queries.py": "compares bindings with the hashes of the texts of replies",
    "app/context/queries.py": "a context is one statement: the line's row, its messages, and what the layers add",
    "app/diary/change_queries.py": "updates the dates of entries by their messages",
    "app/diary/queries.py": "periods: who spoke in their messages, and who wrote an entry then",
    "app/knowledge/message_queries.py": "compares teachings with the hashes of the texts of messages",
    "app/memos/queries.py": "the window: memos with the dates of their messages",
    "app/passages/lookup.py": "messages that the index has found, or that are not in it yet",
    "app/passages/models.py": "a row of the index is kept while a line has its text",
    "app/passages/queries.py": "messages that have no rows in the index yet",
    "app/scenes/queries.py": "scenes that are not covered, because auto-hide has hidden their messages",
    "app/search/statements.py": "texts of all kinds, limited by the time of their messages",
    "app/vault/queries.py": "memos with the dates of their messages",
}
"""The modules outside the log that join `messages` with other tables, and why. To read messages alone, a package calls
a function of `app/messages`. The log are the packages that may import the SQL of chats."""

ACTS = {"open", "print", "input", "exec", "eval", "now", "utcnow", "today", "uuid1", "uuid4", "uuid6", "uuid7"}
"""The functions and methods that a pure module may not call."""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@lru_cache(maxsize=1)  # a test reads a file several times, and then the next file
def _nodes(path: Path) -> Sequence[ast.AST]:
    return tuple(ast.walk(ast.parse(_text(path))))


@cache
def _imports(path: Path) -> Sequence[str]:
    """Return the dotted names of the imported modules; for `from x import y` of another package, also `x.y`."""
    names: list[str] = []
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            folder = ROOT / node.module.replace(".", "/")
            if not folder.is_dir():
                names.append(node.module)
            if not folder.with_suffix(".py").is_file():
                names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Return the called functions and methods by their last names."""
    for node in _nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


@cache
def _is_pure(path: Path) -> bool:
    """Whether the first line of the module's docstring ends with "Pure."."""
    first_line = _text(path).partition("\n")[0]
    return first_line.startswith('"""') and first_line.removesuffix('"""').endswith(" Pure.")


def _may_be_pure(module: str) -> bool:
    """Whether a pure module may import this module."""
    if module.startswith("app."):
        path = ROOT / f"{module.replace('.', '/')}.py"
        return module in ARITHMETIC or (path.is_file() and _is_pure(path))
    return module.partition(".")[0] in STANDARD | VALUES


def _kept_files() -> Iterator[Path]:
    """Return all files of the repository, without those that a tool or a run creates."""
    created = {"__pycache__", "build", ".git", ".venv", ".data"}
    for parent, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in created and not name.endswith(("_cache", ".egg-info"))]
        yield from (Path(parent, name) for name in names if name != ".env")


PURE = [path for path in MODULES if _is_pure(path)]
PAPERS = sorted(path for path in _kept_files() if path.suffix == ".md")


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_file_is_not_too_long(path: Path) -> None:
    assert len(_text(path).splitlines()) <= MAX_LINES


def test_a_folder_has_few_modules() -> None:
    modules = Counter(path.parent for path in [*MODULES, *TESTS] if path.name != "__init__.py")
    assert {_name(folder): count for folder, count in modules.items() if count > MAX_MODULES} == {}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_module_defines_each_name_once(path: Path) -> None:
    # A second definition would silently change what functions above it mean; for variables, no linter says so.
    names: list[str] = []
    for node in ast.parse(_text(path)).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Assign(targets=targets):
                names += [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    assert sorted(set(names)) == sorted(names)


def test_no_file_has_a_vague_name() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
    python = [path.relative_to(ROOT) for path in _kept_files() if path.suffix == ".py"]
    assert [str(path) for path in python if {path.stem, *path.parts[:-1]} & vague] == []


def test_a_tests_name_is_not_too_long() -> None:
    names = [name for path in TESTS for name in re.findall(r"^ *(?:async )?def (test_\w+)", _text(path), re.MULTILINE)]
    assert len(names) > len(TESTS)
    assert [name for name in names if len(name) > MAX_TEST_NAME] == []


def test_there_is_one_committer() -> None:
    paths = [path for path in MODULES if "commit" in _text(path).lower()]
    statements = {
        path
        for path in paths
        for node in _nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.match(r"\s*COMMIT\b", node.value)
    }
    calls = {path for path in paths for name, _ in _calls(path) if name == "commit"}
    assert {_name(path) for path in statements | calls} == {"app/kit/db.py"}


def test_only_the_worker_and_its_notifier_import_arq() -> None:
    importing = {_name(path) for path in MODULES if "arq" in {name.partition(".")[0] for name in _imports(path)}}
    assert importing == {"app/worker.py", "app/kit/worker_notifier.py"}


def test_a_module_is_declared_pure_exactly_if_it_can_be() -> None:
    others = {ROOT / "app/kit/clock.py"} | {path for path in MODULES if path.name in ("__init__.py", "errors.py")}
    possible = {path for path in MODULES if all(map(_may_be_pure, _imports(path)))} - others
    assert sorted(map(_name, possible)) == sorted(map(_name, PURE))


@pytest.mark.parametrize("path", PURE, ids=_name)
def test_a_pure_module_only_computes(path: Path) -> None:
    assert [module for module in _imports(path) if not _may_be_pure(module)] == []
    assert [(name, call.lineno) for name, call in _calls(path) if name in ACTS] == []
    asynchronous = (ast.AsyncFunctionDef, ast.Await)
    assert [node.lineno for node in _nodes(path) if isinstance(node, asynchronous)] == []


@pytest.mark.parametrize("path", [path for path in TESTS if path.name.startswith("test_")], ids=_name)
def test_no_test_sleeps_or_patches(path: Path) -> None:
    # sleep(0) only lets other tasks run. A scripted model may sleep; a test that waits for it may not.
    sleeps = [
        call for name, call in _calls(path) if name == "sleep" and not re.fullmatch(r".*\(0\)", ast.unparse(call))
    ]
    assert [call.lineno for call in sleeps] == []
    patches = {"setattr", "delattr", "setitem", "delitem"}
    methods = [(name, call.lineno) for name, call in _calls(path) if isinstance(call.func, ast.Attribute)]
    assert [(name, line) for name, line in methods if name in patches] == []
    assert not {"mock", "unittest.mock"} & set(_imports(path))


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=_name)
def test_a_lock_has_hashes_and_no_addresses(path: Path) -> None:
    text = _text(path)
    assert "://" not in text
    assert "--index-url" not in text
    pins = re.findall(r"^[\w.\[\]-]+==", text, re.MULTILINE)
    hashed = re.findall(r"^[\w.\[\]-]+==.*\\\n    --hash=sha256:", text, re.MULTILINE)
    assert 0 < len(pins) == len(hashed)


def test_the_locks_pin_every_dependency_to_one_version() -> None:
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    run, dev = (_pins(ROOT / name) for name in ("requirements.lock", "requirements-dev.lock"))
    assert {_package(one) for one in (*project["dependencies"], *extras["embedded"])} <= {name for name, _ in run}
    assert {_package(one) for one in extras["dev"]} <= {name for name, _ in dev}
    assert run <= dev
    local = _pins(ROOT / "requirements-local-embeddings.lock")
    assert {_package(one) for one in extras["local-embeddings"]} == {name for name, _ in local}
    assert not {"torch", "sentence-transformers"} & {name for name, _ in run | dev | local}


def _pins(path: Path) -> set[tuple[str, str]]:
    pins = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;]+)", _text(path), re.MULTILINE)
    return {(_package(name), version) for name, version in pins}


def _package(requirement: str) -> str:
    """Return the normalised name of the package of a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]).lower()


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


def test_make_has_every_documented_target() -> None:
    makefile = _text(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):.* ## \S", makefile, re.MULTILINE))
    assert targets == set(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split())
    gate = [path for path in [ROOT / ".ci/run"] if path.is_file()]
    # A command is at the start of a line or in backticks; "to make sure" is prose.
    commands = {path: re.findall(r"(?:^\s*|`)make ([a-z-]+)", _text(path), re.MULTILINE) for path in [*PAPERS, *gate]}
    assert commands[ROOT / "README.md"]
    unknown = {_name(path): set(found) - targets for path, found in commands.items()}
    assert {path: found for path, found in unknown.items() if found} == {}


def test_paths_in_the_makefile_exist() -> None:
    paths = set(re.findall(r"(?<![\w/.])(?:app|tests|bench)/[\w./-]+", _text(ROOT / "Makefile")))
    assert "tests/oracle" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_variable_with_the_services_prefix_is_a_setting() -> None:
    # The service refuses other variables with its prefix, and tests that start it pass their environment on.
    of_tests = {*TESTS, *MORE} - {ROOT / "tests/kit/test_settings.py"}  # which also sets wrong ones
    found = re.compile(rf"\b{PREFIX}([A-Z0-9_]*[A-Z0-9])\b")
    used = {name for path in (ROOT / "Makefile", *of_tests) for name in found.findall(_text(path))}
    assert "DATABASE_URL" in used
    assert used - {name.upper() for name in Settings.model_fields} == set()


@pytest.mark.parametrize("path", [*MODULES, *TESTS, *MORE], ids=_name)
def test_a_statement_selects_a_column(path: Path) -> None:
    # asyncpg 0.32 writes 8 bytes beyond the end of a row without columns. Within EXISTS, it makes no rows.
    assert re.findall(r"[\"']\s*SELECT\s+FROM\s+\w+", _text(path)) == []


def test_sql_of_messages_is_in_the_log() -> None:
    contracts = tomllib.loads(_text(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    log = next(one for one in contracts if one["name"] == "SQL of chats stays in chats")["allowed_importers"]
    folders = [ROOT / package.replace(".", "/") for package in log]
    others = {path for path in MODULES if OF_MESSAGES.search(_text(path)) and not {*path.parents} & {*folders}}
    assert {_name(path) for path in others} == set(JOINED_WITH_MESSAGES)


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("SELECT 1 FROM messages m", True),
        ("FROM unnest($3::int[]) AS n (seq), messages m", True),
        ("LEFT JOIN\n    messages ON true", True),
        ("UPDATE ONLY messages SET name = $1", True),
        ("INSERT INTO messages (seq)", True),
        ("DELETE FROM messages", True),
        ("select(Message.seq)", True),
        ("SELECT messages FROM message_counts", False),
        ("counted from messages of the line", False),
    ],
)
def test_sql_of_messages_is_recognised(text: str, is_sql: bool) -> None:
    assert (OF_MESSAGES.search(text) is not None) == is_sql


def test_tricks_for_the_planner_are_in_one_module() -> None:
    tricks = {path for path in MODULES if re.search(r"\bOFFSET 0\b|\bSET (?:LOCAL )?enable_", _text(path))}
    assert {_name(path) for path in tricks} == {"app/kit/planner.py"}


@pytest.mark.parametrize("path", PAPERS, ids=_name)
def test_a_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", _text(path), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)", text):
        if ":" in target:
            continue
        leads_to = path.parent / target if target else path
        assert leads_to.exists(), target
        if anchor:
            assert anchor in _anchors(leads_to), f"{target}#{anchor}"


def _anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _text(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
