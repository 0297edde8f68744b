"""The base of embedders that add something to the calls of another one."""

from app.kit.job_context import TextEmbedder


class WrappedEmbedder:
    """Has the name and the dimension of another embedder, and closes it in `aclose`; subclasses define `embed`."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._embedder.name

    @property
    def dimension(self) -> int | None:
        """The length of the model's vectors; None while it is not known."""
        return self._embedder.dimension

    async def aclose(self) -> None:
        """Close the other embedder."""
        await self._embedder.aclose()
