"""Checks whether a request comes from a user of this machine. Pure.

While no key exists, every request that is accepted is trusted. So requests are rejected if they come from another
machine (the peer's address), through a proxy, or from a web page of another host in a browser on this machine, unless
its origin is trusted. A proxy is recognised by forwarding headers, or by HTTP/1.0, which nginx before 1.29.7 uses by
default. A proxy that uses HTTP/1.1 and adds no forwarding header, such as a later nginx with its defaults, is not
recognised: a key has to exist then. A request of another host's web page is recognised by the page's host: it is in
`Origin` if the request is cross-site, and in `Host` after DNS rebinding.
"""

import re
from collections.abc import Collection, Iterable
from ipaddress import IPv6Address, ip_address

_LOOPBACK = rb"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
_ORIGIN = re.compile(rb"https?://" + _LOOPBACK, re.IGNORECASE)
_FORWARDING = re.compile(
    rb"(.*-)?forward(ed|er)(-.*)?|(.*-)?(client|connecting|remote|real|originating|proxyuser)-ip(v6)?"
    rb"|via|proxy|proxy-.*|cdn-loop|front-end-https|cf-(ipcountry|ray|visitor)"
    rb"|x-(original|envoy|azure|amzn|appengine|arr|rewrite|cloud-trace|http-host|ssl|proxy)-.*"
    rb"|x-(host|scheme|url-scheme|remote-addr|real-port|client-(verify|cert.*))"
)
"""Headers that a reverse proxy, a load balancer or a CDN adds."""

_CURRENT = "1.1"
"""The version of HTTP that browsers, curl and HTTP libraries use here, because the server offers no later one."""


def sign_of_a_stranger(
    headers: Iterable[tuple[bytes, bytes]],
    peer: str | None,
    trusted_origins: Collection[str] = (),
    http_version: str = _CURRENT,
) -> str | None:
    """Return why a request may come from elsewhere, as the end of a sentence, or None if it is local.

    Args:
        headers: The headers as in ASGI, with names in lower case.
        peer: The client's address; None if it is unknown, which counts as not local.
        trusted_origins: Origins of web pages that are allowed besides local ones.
        http_version: The version of HTTP that the request uses, such as `1.0`.

    """
    if peer is None or not _is_loopback(peer):
        return "came over the network"
    if http_version != _CURRENT:
        return f"uses HTTP/{http_version}, as proxies do"
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _HOST.fullmatch(value):
                return "has a Host header that is not localhost, 127.0.0.1 or [::1]"
        elif name == b"origin":
            if not _ORIGIN.fullmatch(value) and value.decode("latin-1") not in trusted_origins:
                return "was sent by a web page from another host (its Origin header)"
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
