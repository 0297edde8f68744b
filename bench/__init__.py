"""Measurements: how much of what mattered is kept, and how fast."""
