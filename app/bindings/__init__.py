"""Bindings: what a tool wrote is bound to a reply, and contexts contain it only while that reply has the same text."""
