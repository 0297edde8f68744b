"""Bindings: content that a tool wrote is bound to a reply; contexts contain it while the reply has the same text."""
