"""Diaries: entries in a character's voice; the oldest ones are folded, that is, rewritten as one shorter text."""
