"""Search over what a chat knows: its memories, what its layers have written, and its messages."""
