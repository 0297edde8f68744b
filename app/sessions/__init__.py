"""Sessions: stretches of a chat between two breaks."""
