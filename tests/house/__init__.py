"""Rules for the repository: its code, its documents, its releases, and the order of its tests."""
