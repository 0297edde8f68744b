"""A conversation worth remembering, and what the memory makes of it."""
