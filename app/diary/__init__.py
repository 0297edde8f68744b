"""Diaries: the entries that a character wrote, and the older ones, folded in the character's own voice."""
