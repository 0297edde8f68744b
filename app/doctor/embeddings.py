"""The check of the model that turns texts into vectors."""

from app.doctor.background import judge_model_error
from app.doctor.finding import Finding
from app.embeddings.configured import make_embedder
from app.embeddings.service import find_fault
from app.kit.db import Connection
from app.kit.llm.answer import ModelError
from app.kit.settings import Settings, SettingsError

_CHECK = "embeddings"


async def check_embeddings(connection: Connection, settings: Settings) -> Finding:
    """Ask the model for a vector, and compare its name and dimension with those of the recorded model."""
    try:
        embedder = make_embedder(settings)
    except SettingsError as error:
        return Finding(_CHECK, "fault", f"{error}.", "Install it, or choose another model.")
    if embedder is None:
        return Finding(_CHECK, "note", "No embedding model is configured: texts get no vectors.")
    try:
        fault = await find_fault(connection, embedder)
    except ModelError as error:
        return judge_model_error(embedder.name, error, check=_CHECK, prefix="MEMOBOOK_EMBEDDINGS")
    finally:
        await embedder.aclose()
    if fault is not None:
        advice = "Restore MEMOBOOK_EMBEDDINGS_MODEL, or run memobook reindex."
        return Finding(_CHECK, "fault", f"{fault[0].upper()}{fault[1:]}.", advice)
    return Finding(_CHECK, "ok", f"{embedder.name} returns vectors with {embedder.dimension} dimensions.")
