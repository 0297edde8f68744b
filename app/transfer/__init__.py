"""Other formats in and out: JSONL of messages, SillyTavern chats."""
