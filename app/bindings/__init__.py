"""Bindings: what a tool of the model wrote belongs to the reply that wrote it, and is shown only with it."""
