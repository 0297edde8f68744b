"""What is known in a scope."""
