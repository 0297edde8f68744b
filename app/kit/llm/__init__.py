"""The client for language models, and the counting of its calls."""
