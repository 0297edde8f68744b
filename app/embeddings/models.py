"""The embedding models."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Double, Identity, Index, Integer, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table


class EmbeddingModel(Table):
    """An embedding model whose vectors are stored, were stored, or are being made.

    At most one model is current. A process that is configured with another model does not start. The models that are
    not current are former ones, and the one for which `memobook reindex` makes vectors. `unrelated_similarity` is the
    mean cosine of unrelated sentences (`scale.py`), NULL until it is measured.
    """

    __tablename__ = "embedding_models"
    __table_args__ = (
        CheckConstraint("dimension BETWEEN 1 AND 16000", name="dimension"),
        Index("uq_embedding_models_name_dimension", "name", "dimension", unique=True),
        Index("uq_embedding_models_is_current", "is_current", unique=True, postgresql_where=text("is_current")),
        {"info": {"has_lines": False}},
    )

    model_id: Mapped[int] = mapped_column(Integer, Identity(always=True), primary_key=True)
    name: Mapped[str]
    dimension: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True))
    is_current: Mapped[bool]
    unrelated_similarity: Mapped[float | None] = mapped_column(Double)
