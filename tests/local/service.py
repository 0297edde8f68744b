"""A fake of the service's commands `migrate`, `worker` and `api --host H --port P`.

The environment variable `SERVICE_FAILS` names a command that exits at once with code 3. `SERVICE_ENDS` names a file
for the state of the worker, which then ends at the second SIGTERM.
"""

import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def main(command: str, *options: str) -> None:
    given = ("MEMOBOOK_DATABASE_URL" in os.environ, "MEMOBOOK_REDIS_URL" in os.environ)
    if os.environ.get("SERVICE_FAILS") == command or not all(given):
        sys.exit(3)
    if command == "worker" and "SERVICE_ENDS" in os.environ:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        Path(os.environ["SERVICE_ENDS"]).write_text("running")
        signal.sigwait({signal.SIGTERM})
        signal.sigwait({signal.SIGTERM})
        Path(os.environ["SERVICE_ENDS"]).write_text("ended")
    elif command == "worker":
        signal.pause()
    if command == "api":
        HTTPServer((options[1], int(options[3])), Ready).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
