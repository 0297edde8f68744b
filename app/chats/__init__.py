"""Chats, lines and messages, and the cut, which decides which messages are still sent verbatim."""
