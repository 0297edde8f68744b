"""A database as an earlier version left it, and the answers that version gave."""
