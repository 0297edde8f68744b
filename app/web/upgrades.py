"""Serves a request in HTTP/1.1 even if it offers another protocol, such as HTTP/2 (RFC 9110, section 7.8). Pure.

If a request has the header `Upgrade`, the parser ends the request after its headers, and takes the body for data of the
other protocol. Java's HTTP client sends this header with its first request, so the body of that request would be lost.

A *head* is the request line and the headers of a request.
"""

import re

_UPGRADE = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


def hide_upgrade(part: bytes) -> bytes:
    """Return the bytes with the `Upgrade` headers of the first head renamed to `X-Upgrade`; a body is not changed.

    `part` must begin within a head. If the name of a header, or the line break before it, is split between two parts,
    the header is not found, and the parser ends the request after its head.
    """
    if b"pgrade" not in part and b"PGRADE" not in part:
        return part
    head, end, rest = part.partition(_HEAD_END)
    return _UPGRADE.sub(b"\r\nX-Upgrade:", head) + end + rest
