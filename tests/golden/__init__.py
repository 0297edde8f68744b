"""A long conversation with scripted model answers, and the contexts that come of it, to be read by eye."""
