"""Long-term memories: sentences with an importance that fades, and with the messages that they come from."""
