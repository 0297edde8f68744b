"""Finds where scenes end: when a model is asked, how its answer is read, and which cut waits for it."""
