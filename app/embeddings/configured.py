"""The embedding model that the settings select."""

from app.embeddings.client import EmbeddingClient
from app.kit.job_context import TextEmbedder
from app.kit.settings import Settings


def make_embedder(settings: Settings) -> TextEmbedder | None:
    """Return the configured embedding model, or None if none is configured: then no text gets a vector."""
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
