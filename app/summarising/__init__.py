"""Shared by the layers that summarise messages: prompts, parsing and judging of answers, quoting without a model."""
