"""Whether a request comes from this machine's own user. Pure.

While no key exists whoever reaches the service is trusted, so three ways in are closed: from another
machine (the peer's address), through a proxy (forwarding headers), and through a web page in this
machine's browser. A page's request names the page's own host in `Host` if its name was rebound to
127.0.0.1, and in `Origin` if it asks across sites.
"""

import re
from collections.abc import Collection, Iterable
from ipaddress import IPv6Address, ip_address

_LOOPBACK = rb"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
_ORIGIN = re.compile(rb"https?://" + _LOOPBACK, re.IGNORECASE)
_FORWARDING = re.compile(
    rb"forwarded|via|x-forwarded(-.*)?|x-original-.*|(x-real|x-client|true-client|cf-connecting)-ip"
)


def sign_of_a_stranger(
    headers: Iterable[tuple[bytes, bytes]], peer: str | None, trusted_origins: Collection[str] = ()
) -> str | None:
    """What shows that a request may come from elsewhere, as the end of a sentence; None if nothing does.

    Args:
        headers: As ASGI has them, names in lower case.
        peer: The address of the other end; None, when it is not known, is a stranger's.
        trusted_origins: Origins of web pages that may call although they are not from here.

    """
    if peer is None or not _is_loopback(peer):
        return "came over the network"
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _HOST.fullmatch(value):
                return "has a Host header that is not localhost, 127.0.0.1 or [::1]"
        elif name == b"origin":
            if not _ORIGIN.fullmatch(value) and value.decode("latin-1") not in trusted_origins:
                return "was made by a web page from elsewhere (its Origin header)"
        elif _FORWARDING.fullmatch(name):
            return f"was forwarded (its header {name.decode('latin-1')})"
    return None if hosts else "has no Host header"


def _is_loopback(peer: str) -> bool:
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
