"""Exports chats to files and imports them: JSONL of messages, SillyTavern chats, transcripts, vaults."""
