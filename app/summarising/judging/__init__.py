"""Judges the answers of models, with the same rules for the prompts of all layers."""
