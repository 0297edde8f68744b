"""The tools that a model may call while it plays a character: their declarations, and the calls."""
