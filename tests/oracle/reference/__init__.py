"""The slow reference model: what a conversation is and remembers, computed from the beginning each time."""
