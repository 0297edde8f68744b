"""Lines of a chat: checkpoints, restores, switches and forks."""
