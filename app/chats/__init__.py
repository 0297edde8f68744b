"""Chats: the row of a line with its head, settings, events and revisions."""
