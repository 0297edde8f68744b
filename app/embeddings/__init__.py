"""Embeddings: texts become vectors whose inner product says how similar the texts are."""
