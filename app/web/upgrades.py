"""Serve requests that offer another protocol, such as HTTP/2, in HTTP/1.1 (RFC 9110, section 7.8). Pure.

The parser ends a request with an `Upgrade` field at its head and takes the body for the other protocol. The HTTP client
of Java sends such a field with its first request, so that a message posted by it would be lost.
"""

import re

_UPGRADE = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


def hide_upgrade(part: bytes) -> bytes:
    """Return the bytes with the `Upgrade` fields of the first head renamed to `X-Upgrade`; a body is not changed.

    `part` begins in a head. A field whose name is split between two parts is not found; the parser then ends the
    request at its head.
    """
    if b"pgrade" not in part and b"PGRADE" not in part:
        return part
    head, end, rest = part.partition(_HEAD_END)
    return _UPGRADE.sub(b"\r\nX-Upgrade:", head) + end + rest
