"""Logging: one line an event on stderr, without anybody's words in it."""

import logging
import sys


def configure_logging(level: str) -> None:
    """Send the service's log to stderr at `level`; libraries speak from warning on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("app").setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
