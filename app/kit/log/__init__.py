"""Logs: one JSON object for each event, without the words of a conversation."""
