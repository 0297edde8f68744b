"""Settings: environment variables with the prefix MEMOBOOK_, read once at startup.

An invalid or unknown setting is a SettingsError that names it. Unknown settings are rejected so that a misspelt name is
not silently ignored.
"""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

import httpx
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.kit.gate.admission import DEFAULT_LIMITS, WaitLimits
from app.kit.limits import UNLIMITED, TokenLimits
from app.kit.llm.request_settings import OWN_SETTINGS, RequestSettings
from app.kit.validation_errors import word_error

PREFIX = "MEMOBOOK_"

LOCAL_EMBEDDINGS = "local"
"""The value of EMBEDDINGS_BASE_URL that selects the embedding model that runs inside this process."""

_MAX_PORT = 65_535
_DATABASE_URL = re.compile(
    r"\w+(\+\w+)?://([^:/@]*(:[^@]*)?@)?(\[[^/?\]]+\]|[^/:?\[]*)(:(?P<port>\d+))?([/?].*)?", re.DOTALL
)

Seconds = Annotated[float, Field(ge=0, le=86_400)]
RequestsPerSecond = Annotated[float, Field(ge=0, le=1_000_000)]
MonthlyTokens = Annotated[int, Field(ge=1, le=10**15)]
ModelName = Annotated[str, Field(min_length=1, max_length=200)]
AnswerTokens = Annotated[int, Field(ge=100, le=1_000_000)]
Temperature = Annotated[float, Field(ge=0, le=2)]


def _split(value: object) -> object:
    """Split a comma-separated list from an environment variable; return other values unchanged."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _json_object(value: object) -> object:
    """Parse JSON from an environment variable; return other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError("must be a JSON object") from None


def _database_url(url: str) -> str:
    """Return `url` if SQLAlchemy can parse it. Raises ValueError otherwise.

    As in SQLAlchemy, the password may contain any character but `@`. SQLAlchemy itself is not used, so that loading the
    settings does not import it.
    """
    parts = _DATABASE_URL.fullmatch(url)
    if parts is None or not 0 < int(parts["port"] or 1) <= _MAX_PORT:
        raise ValueError("is not a valid database URL")
    return url


def _redis_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError if the port is invalid
        path = parts.path.strip("/")
        database = parse_qs(parts.query).get("db", ["0"])[0] if parts.scheme == "unix" else path
        int(database or 0)
    except ValueError:
        raise ValueError("is not a valid Redis URL") from None
    return url


def _http_url(url: str) -> str:
    try:
        host = httpx.URL(url).host
        urlsplit(url).port  # noqa: B018 - raises ValueError if the port is invalid
    except (httpx.InvalidURL, ValueError):
        raise ValueError("is not a valid http(s) URL") from None
    if not host:
        raise ValueError("is not a valid http(s) URL: it has no host")
    return url


def _url_or_local(url: str) -> str:
    return url if url == LOCAL_EMBEDDINGS else _http_url(url)


def _header_value(key: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[!-~]*", key.get_secret_value().strip()):
        raise ValueError("must be printable ASCII without spaces")
    return key


def _extra_body(body: dict[str, Any]) -> dict[str, Any]:
    if taken := sorted(OWN_SETTINGS & body.keys()):
        raise ValueError(f"`{taken[0]}` is set by the service or has a setting of its own")
    return body


EmbeddingUrl = Annotated[str, Field(pattern=r"^(https?://|local$)"), AfterValidator(_url_or_local)]
ExtraBody = Annotated[dict[str, Any], AfterValidator(_extra_body)]


class SettingsError(Exception):
    """A setting is invalid. The message is one line that names it."""


class Settings(BaseSettings):
    """The settings of this process. Each field is read from the variable MEMOBOOK_<NAME>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_file=".env", env_ignore_empty=True, extra="ignore")

    database_url: (
        Annotated[str, Field(pattern=r"^postgres(ql)?(\+asyncpg)?://"), AfterValidator(_database_url)] | None
    ) = None
    redis_url: Annotated[str, Field(pattern=r"^(redis|rediss|unix)://"), AfterValidator(_redis_url)] | None = None
    database_pool: Annotated[int, Field(ge=2, le=500)] = 20
    database_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 30.0
    max_waiting_per_chat: Annotated[int, Field(ge=1, le=10_000)] = DEFAULT_LIMITS.per_chat
    max_waiting_per_tenant: Annotated[int, Field(ge=1, le=10_000)] = DEFAULT_LIMITS.per_tenant
    admin_key: SecretStr | None = None
    jwt_secret: Annotated[SecretStr, Field(min_length=32)] | None = None

    llm_base_url: Annotated[str, Field(pattern=r"^https?://"), AfterValidator(_http_url)] | None = None
    llm_model: str | None = None
    llm_api_key: Annotated[SecretStr, AfterValidator(_header_value)] | None = None
    llm_timeout_s: Annotated[float, Field(gt=0, le=600)] = 60.0
    llm_concurrency: Annotated[int, Field(ge=1, le=256)] = 4
    llm_context_tokens: Annotated[int, Field(ge=4_096, le=2_000_000)] = 16_384
    llm_max_tokens: AnswerTokens | None = None
    llm_temperature: Temperature | None = None
    llm_extra_body: Annotated[ExtraBody | None, NoDecode, BeforeValidator(_json_object)] = None
    llm_model_of: Annotated[dict[str, ModelName] | None, NoDecode, BeforeValidator(_json_object)] = None
    llm_max_tokens_of: Annotated[
        dict[str, Annotated[AnswerTokens, Field(strict=True)]] | None, NoDecode, BeforeValidator(_json_object)
    ] = None
    llm_temperature_of: Annotated[
        dict[str, Annotated[Temperature, Field(strict=True)]] | None, NoDecode, BeforeValidator(_json_object)
    ] = None
    llm_extra_body_of: Annotated[dict[str, ExtraBody] | None, NoDecode, BeforeValidator(_json_object)] = None
    prompts_dir: Path | None = None

    embeddings_base_url: EmbeddingUrl | None = None
    embeddings_model: ModelName | None = None
    embeddings_api_key: Annotated[SecretStr, AfterValidator(_header_value)] | None = None
    embeddings_dimensions: Annotated[int, Field(ge=1, le=16_000)] | None = None
    embeddings_timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    embeddings_query_timeout_s: Annotated[float, Field(gt=0, le=10)] = 0.3
    embeddings_batch_size: Annotated[int, Field(ge=1, le=2_048)] = 64
    embeddings_concurrency: Annotated[int, Field(ge=1, le=256)] = 4

    tenant_monthly_tokens: MonthlyTokens | None = None
    tenant_monthly_tokens_of: Annotated[
        dict[str, Annotated[MonthlyTokens, Field(strict=True)] | None] | None, NoDecode, BeforeValidator(_json_object)
    ] = None

    max_lines: Annotated[int, Field(ge=2, le=100_000)] = 200
    max_checkpoints: Annotated[int, Field(ge=1, le=100_000)] = 200
    kept_replaced_lines: Annotated[int, Field(ge=1, le=100_000)] = 20

    max_import_bytes: Annotated[int, Field(ge=1_024, le=2**30)] = 64 * 1024 * 1024

    max_connections: Annotated[int, Field(ge=10, le=100_000)] = 1_000
    head_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 10.0
    body_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    write_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 30.0

    settle_s: Seconds = 2.0
    work_late_s: Annotated[float, Field(gt=0, le=2_592_000)] = 600.0
    stop_grace_s: Seconds = 15.0
    poll_s: Annotated[float, Field(ge=1, le=3_600)] = 30.0
    rate_limit_key: RequestsPerSecond = 0.0
    rate_limit_token: RequestsPerSecond = 50.0
    rate_limit_burst_s: Annotated[float, Field(ge=0, le=3_600)] = 4.0
    cors_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def token_limits(self) -> TokenLimits:
        """The monthly token limits of tenants."""
        return TokenLimits(self.tenant_monthly_tokens, self.tenant_monthly_tokens_of or {})

    @property
    def holding_limits(self) -> TokenLimits:
        """The token limits that hold work back. Without any model there are none, because no tokens are used."""
        return self.token_limits if self.llm_base_url or self.embeddings_base_url else UNLIMITED

    @property
    def wait_limits(self) -> WaitLimits:
        """The maximum numbers of requests that wait for a connection."""
        return WaitLimits(self.max_waiting_per_chat, self.max_waiting_per_tenant)

    @property
    def requests(self) -> RequestSettings:
        """The settings for the requests of all layers to the model."""
        return RequestSettings(
            max_tokens=self.llm_max_tokens, temperature=self.llm_temperature, extra_body=self.llm_extra_body or {}
        )

    @property
    def requests_of(self) -> dict[str, RequestSettings]:
        """The settings for the requests of single layers to the model, by the layer's name."""
        models, limits = self.llm_model_of or {}, self.llm_max_tokens_of or {}
        temperatures, bodies = self.llm_temperature_of or {}, self.llm_extra_body_of or {}
        return {
            layer: RequestSettings(models.get(layer), limits.get(layer), temperatures.get(layer), bodies.get(layer, {}))
            for layer in sorted({*models, *limits, *temperatures, *bodies})
        }

    @property
    def sqlalchemy_url(self) -> str:
        """The database URL with the asyncpg driver. Raises SettingsError if no URL is set."""
        if self.database_url is None:
            raise SettingsError(f"{PREFIX}DATABASE_URL is not set (memobook up starts an embedded database)")
        _, rest = self.database_url.split("://", 1)
        return f"postgresql+asyncpg://{rest}"


def load_settings(**overrides: object) -> Settings:
    """Return the settings from the environment and `.env`.

    `overrides` are values by field name, which take precedence. Raises SettingsError, with one line that names the
    invalid setting.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in (*os.environ, *_names_in_env_file(Path(".env"))):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            raise SettingsError(f"{name}: there is no such setting")
    try:
        settings = Settings(**overrides)  # type: ignore[arg-type]  # checked by the model
    except ValidationError as error:
        first = error.errors()[0]
        name = PREFIX + str(first["loc"][0]).upper()
        raise SettingsError(f"{name}: {word_error(first)}") from None
    if settings.llm_base_url and not settings.llm_model:
        raise SettingsError(f"{PREFIX}LLM_MODEL: required if {PREFIX}LLM_BASE_URL is set")
    _check_embeddings(settings)
    _check_answer_tokens(settings)
    return settings


def _check_embeddings(settings: Settings) -> None:
    """Raise SettingsError if a server is set without a model, or if a model or dimensions are set for the local one."""
    url = f"{PREFIX}EMBEDDINGS_BASE_URL"
    if settings.embeddings_base_url == LOCAL_EMBEDDINGS:
        for name in ("embeddings_model", "embeddings_dimensions"):
            if getattr(settings, name) is not None:
                raise SettingsError(f"{PREFIX}{name.upper()}: cannot be set if {url} is {LOCAL_EMBEDDINGS}")
    elif settings.embeddings_base_url and not settings.embeddings_model:
        raise SettingsError(f"{PREFIX}EMBEDDINGS_MODEL: required if {url} is set")


def _check_answer_tokens(settings: Settings) -> None:
    """Raise SettingsError if the limit of an answer leaves less than half of the model's context to the prompt."""
    limits = {"LLM_MAX_TOKENS": settings.llm_max_tokens or 0}
    limits["LLM_MAX_TOKENS_OF"] = max((settings.llm_max_tokens_of or {}).values(), default=0)
    for name, tokens in limits.items():
        if 2 * tokens > settings.llm_context_tokens:
            raise SettingsError(
                f"{PREFIX}{name}: must be at most half of {PREFIX}LLM_CONTEXT_TOKENS ({settings.llm_context_tokens})"
            )


def _names_in_env_file(path: Path) -> list[str]:
    if not path.is_file():
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read ({error})") from None
    lines = (line.strip().removeprefix("export ") for line in text.splitlines())
    return [line.split("=", 1)[0].strip() for line in lines if "=" in line and not line.startswith("#")]
