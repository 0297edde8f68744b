import os
from pathlib import Path

import pytest

from app.kit.llm.request_settings import RequestSettings
from app.kit.settings import PREFIX, Settings, SettingsError, load_settings

DEFAULTS = Settings.model_construct()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an environment without settings."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _refusal() -> str:
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_no_setting_is_required() -> None:
    assert load_settings() == DEFAULTS


def test_a_setting_is_a_variable_with_the_prefix_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_POLL_S", "7.5")
    monkeypatch.setenv("memobook_log_level", "debug")
    settings = load_settings()
    assert (settings.poll_s, settings.log_level) == (7.5, "debug")


def test_env_is_read_from_the_folder_and_environment_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text("MEMOBOOK_POLL_S=5\nexport MEMOBOOK_LLM_CONCURRENCY='2'\n")
    monkeypatch.setenv("MEMOBOOK_POLL_S", "6")
    settings = load_settings()
    assert (settings.poll_s, settings.llm_concurrency) == (6, 2)


def test_foreign_variables_and_comments_in_env_are_ignored(folder: Path) -> None:
    (folder / ".env").write_text("POSTGRES_PASSWORD=x\n\n# MEMOBOOK_NO_SUCH=1\n#MEMOBOOK_POLL_S=0\n")
    assert load_settings() == DEFAULTS


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_an_empty_variable_counts_as_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + name.upper(), "")
    assert load_settings() == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://localhost/memobook"),
        ("DATABASE_URL", "localhost:5432"),
        ("DATABASE_URL", "postgresql://me:secret@db:many/memobook"),
        ("DATABASE_URL", "postgresql://me:secret@db:99999/memobook"),
        ("DATABASE_URL", "postgresql://me:secret@[::1/memobook"),
        ("REDIS_URL", "http://localhost"),
        ("REDIS_URL", "redis://:secret@cache:many"),
        ("REDIS_URL", "redis://:secret@cache:99999/0"),
        ("REDIS_URL", "redis://:secret@cache/first"),
        ("REDIS_URL", "unix:///run/cache.sock?db=first"),
        ("LLM_BASE_URL", "http://"),
        ("LLM_BASE_URL", "http:///v1"),
        ("LLM_BASE_URL", "http://:secret@model:many/v1"),
        ("LLM_API_KEY", "sécret"),
        ("DATABASE_POOL", "0"),
        ("DATABASE_POOL", "many"),
        ("JWT_SECRET", "too short"),
        ("LLM_BASE_URL", "localhost:11434/v1"),
        ("LLM_TIMEOUT_S", "0"),
        ("LLM_TIMEOUT_S", "inf"),
        ("LLM_CONCURRENCY", "1.5"),
        ("LLM_CONTEXT_TOKENS", "-1"),
        ("TENANT_MONTHLY_TOKENS", "0"),
        ("TENANT_MONTHLY_TOKENS", "plenty"),
        ("TENANT_MONTHLY_TOKENS", "1e30"),
        ("TENANT_MONTHLY_TOKENS_OF", "trial=5"),
        ("TENANT_MONTHLY_TOKENS_OF", "[5]"),
        ("TENANT_MONTHLY_TOKENS_OF", '"secret"'),
        ("TENANT_MONTHLY_TOKENS_OF", '{"trial": 0}'),
        ("TENANT_MONTHLY_TOKENS_OF", '{"trial": true}'),
        ("TENANT_MONTHLY_TOKENS_OF", '{"trial": "plenty"}'),
        ("LLM_MAX_TOKENS", "99"),
        ("LLM_MAX_TOKENS", "8193"),  # more than half of the default context
        ("LLM_MAX_TOKENS_OF", '{"memos": 8193}'),
        ("LLM_MAX_TOKENS_OF", '{"memos": "600"}'),
        ("LLM_TEMPERATURE", "hot"),
        ("LLM_TEMPERATURE_OF", '{"memos": 2.1}'),
        ("LLM_MODEL_OF", "summary=large"),
        ("LLM_MODEL_OF", '{"summary": ""}'),
        ("LLM_EXTRA_BODY", '["secret"]'),
        ("LLM_EXTRA_BODY", '{"stream": "secret"}'),
        ("LLM_EXTRA_BODY_OF", '{"memos": {"model": "secret"}}'),
        ("LLM_BASE_URL", "http://1.2.3.999/v1"),
        ("LLM_BASE_URL", "http://xn--a/v1"),
        ("LLM_BASE_URL", "http://model:99999/v1"),
        ("EMBEDDINGS_BASE_URL", "http://exämple..com/v1"),
        ("EMBEDDINGS_BASE_URL", "localhost:11434/v1"),
        ("EMBEDDINGS_BASE_URL", "locally"),
        ("EMBEDDINGS_API_KEY", "sécret"),
        ("EMBEDDINGS_DIMENSIONS", "0"),
        ("EMBEDDINGS_DIMENSIONS", "16001"),
        ("EMBEDDINGS_BATCH_SIZE", "0"),
        ("SETTLE_S", "-1"),
        ("SETTLE_S", "nan"),
        ("POLL_S", "soon\nor later"),
        ("POLL_S", "nan"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    refusal = _refusal()
    assert refusal.startswith(f"{PREFIX}{name}: ")
    assert "secret" not in refusal


def test_a_wrong_setting_in_env_is_one_line_that_names_it(folder: Path) -> None:
    (folder / ".env").write_text("MEMOBOOK_POLL_S=soon\n")
    assert _refusal().startswith("MEMOBOOK_POLL_S: ")


@pytest.mark.parametrize("name", ["MEMOBOOK_DATABSE_URL", "memobook_poll", "MEMOBOOK_"])
def test_a_misspelt_setting_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert _refusal() == f"{name}: there is no such setting"


@pytest.mark.parametrize("line", ["MEMOBOOK_SWEP_S=5", "  export MEMOBOOK_SWEP_S = 5", "MEMOBOOK_SWEP_S="])
def test_a_misspelt_setting_in_env_is_refused(folder: Path, line: str) -> None:
    (folder / ".env").write_text(f"MEMOBOOK_POLL_S=5\n{line}\n")
    assert _refusal() == "MEMOBOOK_SWEP_S: there is no such setting"


def test_an_env_that_is_not_text_is_one_line(folder: Path) -> None:
    (folder / ".env").write_bytes(b"MEMOBOOK_POLL_S=5 # caf\xe9\n")
    assert _refusal().startswith(".env: cannot be read (")


def test_a_model_needs_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_LLM_BASE_URL", "http://127.0.0.1:11434/v1")
    assert _refusal() == "MEMOBOOK_LLM_MODEL: required if MEMOBOOK_LLM_BASE_URL is set"
    monkeypatch.setenv("MEMOBOOK_LLM_MODEL", "small")
    assert load_settings().llm_model == "small"


def test_an_embedding_model_needs_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_EMBEDDINGS_BASE_URL", "http://127.0.0.1:11434/v1")
    assert _refusal() == "MEMOBOOK_EMBEDDINGS_MODEL: required if MEMOBOOK_EMBEDDINGS_BASE_URL is set"
    monkeypatch.setenv("MEMOBOOK_EMBEDDINGS_MODEL", "small")
    assert load_settings().embeddings_model == "small"


@pytest.mark.parametrize(("name", "value"), [("EMBEDDINGS_MODEL", "small"), ("EMBEDDINGS_DIMENSIONS", "384")])
def test_the_local_model_cannot_be_chosen_again(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_EMBEDDINGS_BASE_URL", "local")
    assert load_settings().embeddings_base_url == "local"
    monkeypatch.setenv(PREFIX + name, value)
    assert _refusal() == f"{PREFIX}{name}: cannot be set if MEMOBOOK_EMBEDDINGS_BASE_URL is local"


def test_a_command_line_value_wins_and_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_POLL_S", "7")
    assert load_settings(poll_s=3).poll_s == 3
    with pytest.raises(SettingsError, match=r"^MEMOBOOK_POLL_S: "):
        load_settings(poll_s=0)


def test_origins_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_CORS_ORIGINS", "https://a.example, http://b.example:3000,,")
    assert load_settings().cors_origins == ("https://a.example", "http://b.example:3000")


def test_a_tenant_has_its_own_limit_the_common_one_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not load_settings().token_limits.limits_anyone()
    monkeypatch.setenv("MEMOBOOK_TENANT_MONTHLY_TOKENS", "1000")
    monkeypatch.setenv("MEMOBOOK_TENANT_MONTHLY_TOKENS_OF", '{"trial": 10, "ours": null}')
    limits = load_settings().token_limits
    assert [limits.limit_of(tenant) for tenant in ("trial", "ours", "another")] == [10, None, 1_000]


def test_a_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_ADMIN_KEY", "hush-hush")
    monkeypatch.setenv("MEMOBOOK_LLM_API_KEY", "hush-hush")
    assert "hush" not in repr(load_settings())
    monkeypatch.setenv("MEMOBOOK_JWT_SECRET", "hush-hush")
    assert "hush" not in _refusal()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "postgres+asyncpg"])
def test_the_driver_is_named_however_the_database_was_written(scheme: str) -> None:
    settings = load_settings(database_url=f"{scheme}://me:p%40ss@db:5432/memobook?host=/run")
    assert settings.sqlalchemy_url == "postgresql+asyncpg://me:p%40ss@db:5432/memobook?host=/run"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgresql://me:p#ss/w?rd@db/memobook"),
        ("DATABASE_URL", "postgresql://memobook@/memobook?host=/run/postgresql&port=5433"),
        ("REDIS_URL", "rediss://:p%23ss@cache:6380/1"),
        ("REDIS_URL", "unix:///run/cache.sock?db=1"),
        ("LLM_BASE_URL", "http://[::1]:11434/v1"),
        ("LLM_API_KEY", "hush-hush\n"),
    ],
)
def test_an_address_may_be_any_that_can_be_reached(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    monkeypatch.setenv("MEMOBOOK_LLM_MODEL", "small")
    found = getattr(load_settings(), name.lower())
    assert (found.get_secret_value() if name == "LLM_API_KEY" else found) == value


def test_without_a_database_its_url_names_what_is_missing() -> None:
    with pytest.raises(SettingsError, match="MEMOBOOK_DATABASE_URL"):
        load_settings().sqlalchemy_url  # noqa: B018 - a property that raises


def test_requests_of_a_layer_have_what_all_have_and_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOBOOK_LLM_MAX_TOKENS", "4000")
    monkeypatch.setenv("MEMOBOOK_LLM_EXTRA_BODY", '{"reasoning_effort": "low", "seed": 1}')
    monkeypatch.setenv("MEMOBOOK_LLM_MODEL_OF", '{"summary": "large"}')
    monkeypatch.setenv("MEMOBOOK_LLM_TEMPERATURE_OF", '{"summary": 0}')
    monkeypatch.setenv("MEMOBOOK_LLM_EXTRA_BODY_OF", '{"diary": {"seed": 2}}')
    settings = load_settings()
    both = {"reasoning_effort": "low", "seed": 1}
    assert settings.requests == RequestSettings(max_tokens=4000, extra_body=both)
    merged = {layer: settings.requests.merge(own) for layer, own in settings.requests_of.items()}
    assert merged == {
        "summary": RequestSettings("large", 4000, 0, both),
        "diary": RequestSettings(None, 4000, None, {"reasoning_effort": "low", "seed": 2}),
    }
