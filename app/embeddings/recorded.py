"""The model whose vectors are stored, and how another one differs from it. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A row of `embedding_models`.

    Attributes:
        model_id: Its id.
        name: The name of the model.
        dimension: The length of the model's vectors.
        unrelated: The mean cosine of unrelated sentences (`scale.py`); None until it is measured.

    """

    model_id: int
    name: str
    dimension: int
    unrelated: float | None = None

    def find_difference(self, name: str, dimension: int | None) -> str | None:
        """Return in one line how another model differs, or None if it does not.

        `dimension` is None if it is not known; then only the names are compared.
        """
        if (name, dimension or self.dimension) == (self.name, self.dimension):
            return None
        other = f"{name} ({dimension} dimensions)" if dimension else name
        return f"the stored vectors are of {self.name} ({self.dimension} dimensions), not of {other}"
