"""Re-import: make a chat equal a given list of messages."""
