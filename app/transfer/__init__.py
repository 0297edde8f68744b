"""Reads conversations from other formats: JSONL of messages, SillyTavern chats."""
