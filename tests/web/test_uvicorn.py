"""The code of uvicorn that the protocol of connections is built on."""

import hashlib
import inspect

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.web.protocol import BoundedProtocol

RELIED_ON = {"_unset_keepalive_if_required", "_start_asgi_task", "shutdown"}
PINNED = {
    "FlowControl": "126debcdaa894c83",
    "RequestResponseCycle": "e67d470d435dcc1c",
    "__init__": "4f08999410347141",
    "_start_asgi_task": "9c08c2571ae9b038",
    "_unset_keepalive_if_required": "00a6a4e47214e68e",
    "connection_lost": "c91a4c9bf2e29c55",
    "connection_made": "6efb565ff3d36b91",
    "data_received": "010a7ae59a5d3b1a",
    "eof_received": "5652627579a02369",
    "on_body": "dba9c32aeba35b6a",
    "on_header": "65d62c044f61fdbd",
    "on_headers_complete": "1ea8589acfad92d8",
    "on_message_begin": "96d377fdc7c2baef",
    "on_message_complete": "1fbad42dc31fc01f",
    "on_response_complete": "64e254f28e389e76",
    "on_url": "37be44e962b04ca8",
    "pause_writing": "17a8fd215d96a13c",
    "resume_writing": "7844bbaa8cceb1ef",
    "shutdown": "d7351fa33f00d430",
    "timeout_keep_alive_handler": "8b53bf5f2e202970",
}
"""The code of uvicorn that `BoundedProtocol` overrides or relies on, each with the start of its sha-256."""


def test_the_overridden_uvicorn_code_is_unchanged() -> None:
    own, theirs = vars(BoundedProtocol), vars(HttpToolsProtocol)
    overridden = {name for name, value in own.items() if inspect.isfunction(value) and name in theirs}
    assert len(overridden) >= 14
    code = {name: theirs[name] for name in overridden | RELIED_ON}
    code |= {"RequestResponseCycle": RequestResponseCycle, "FlowControl": FlowControl}
    found = {name: hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:16] for name, part in code.items()}
    assert found == PINNED, (
        "uvicorn has changed code that app/web/protocol.py overrides or relies on. Read how these methods differ, "
        "adapt BoundedProtocol, run tests/web, and write the new hashes into PINNED."
    )
