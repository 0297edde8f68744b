"""Consolidation: the facts and memories that are learnt from a conversation, with a model or without."""
