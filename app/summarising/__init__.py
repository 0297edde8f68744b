"""Shared by the layers that summarise messages: prompts, parsing of answers, and extractive summaries."""
