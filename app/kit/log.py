"""Logging: one line per event on stderr. The content of messages is never logged."""

import logging
import sys


def configure_logging(level: str) -> None:
    """Log to stderr: the service at `level`, libraries at `warning`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("app").setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
