"""What a model may call while it plays a character: the tools, as each format lists them, and what runs a call."""
