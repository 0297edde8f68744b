"""Memobook: the memory service behind companion and roleplay chat."""
