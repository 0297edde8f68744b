"""The model whose vectors are stored, and how another one differs from it. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A row of `embedding_models`; `dimension` is the length of the model's vectors."""

    model_id: int
    name: str
    dimension: int

    def find_difference(self, name: str, dimension: int | None) -> str | None:
        """Return in one line how another model differs, or None if it does not.

        `dimension` is None if it is not known; then it does not differ.
        """
        if (name, dimension or self.dimension) == (self.name, self.dimension):
            return None
        other = f"{name} ({dimension} dimensions)" if dimension else name
        return f"the stored vectors are of {self.name} ({self.dimension} dimensions), not of {other}"
