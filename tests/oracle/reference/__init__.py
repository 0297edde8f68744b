"""The slow reference model: what a conversation is and remembers, computed anew each time."""
