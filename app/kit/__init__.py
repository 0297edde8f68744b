"""Shared infrastructure: settings, database, errors, the work queue, the model client. Imports no feature package."""
