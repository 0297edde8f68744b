import pytest

from app.keys.loopback import sign_of_a_stranger

HERE = (b"host", b"localhost:8000")


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000"],
)
def test_a_loopback_host_is_local(host: str) -> None:
    assert sign_of_a_stranger([(b"host", host.encode())], "127.0.0.1") is None


@pytest.mark.parametrize(
    "host",
    [
        "memobook.example",
        "testserver",
        "localhost.example",
        "localhost:8000.example",
        "127.0.0.1.example",
        "0.0.0.0",
        "localhost:",
        "localhost@example",
        "192.168.1.4:8000",
        "",
    ],
)
def test_a_host_other_than_loopback_is_not_local(host: str) -> None:
    assert "Host" in str(sign_of_a_stranger([(b"host", host.encode())], "127.0.0.1"))


def test_a_second_host_header_must_be_local_too() -> None:
    assert sign_of_a_stranger([HERE, (b"host", b"evil.example")], "127.0.0.1")


def test_a_request_without_a_host_is_not_local() -> None:
    assert sign_of_a_stranger([], "127.0.0.1")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.0.0.53", "::1", "::ffff:127.0.0.1"])
def test_a_loopback_peer_is_from_here(peer: str) -> None:
    assert sign_of_a_stranger([HERE], peer) is None


@pytest.mark.parametrize("peer", [None, "", "testclient", "192.168.1.4", "172.17.0.1", "::ffff:10.0.0.1"])
def test_a_remote_client_with_a_forged_host_is_not_local(peer: str | None) -> None:
    assert sign_of_a_stranger([HERE], peer) == "came over the network"


@pytest.mark.parametrize(
    "header",
    [
        "forwarded",
        "via",
        "cf-connecting-ip",
        "cf-connecting-ipv6",
        "cf-ipcountry",
        "cf-ray",
        "cf-visitor",
        "cdn-loop",
        "client-ip",
        "cluster-client-ip",
        "do-connecting-ip",
        "fastly-client-ip",
        "fly-client-ip",
        "front-end-https",
        "proxy",
        "proxy-connection",
        "proxy-client-ip",
        "proxy-authorization",
        "true-client-ip",
        "wl-proxy-client-ip",
        "x-amzn-trace-id",
        "x-arr-ssl",
        "x-appengine-user-ip",
        "x-azure-clientip",
        "x-client-ip",
        "x-client-verify",
        "x-cloud-trace-context",
        "x-cluster-client-ip",
        "x-envoy-external-address",
        "x-envoy-expected-rq-timeout-ms",
        "x-forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-forwarded-server",
        "x-forwarder-for",
        "x-host",
        "x-http-host-override",
        "x-original-for",
        "x-original-forwarded-for",
        "x-original-host",
        "x-original-uri",
        "x-original-url",
        "x-originating-ip",
        "x-proxyuser-ip",
        "x-real-ip",
        "x-real-port",
        "x-remote-addr",
        "x-remote-ip",
        "x-rewrite-url",
        "x-scheme",
        "x-ssl-client-verify",
        "x-url-scheme",
        "x-vercel-forwarded-for",
    ],
)
def test_a_proxy_header_marks_a_request_as_forwarded(header: str) -> None:
    sign = sign_of_a_stranger([HERE, (header.encode(), b"127.0.0.1")], "127.0.0.1")
    assert sign == f"was forwarded (its header {header})"


@pytest.mark.parametrize("version", ["1.0", "0.9"])
def test_a_proxy_may_add_no_header_but_speaks_http_1_0(version: str) -> None:
    headers = [(b"host", b"127.0.0.1:8000"), (b"connection", b"close")]  # as nginx before 1.29.7 sends them by default
    sign = sign_of_a_stranger(headers, "127.0.0.1", http_version=version)
    assert sign == f"uses HTTP/{version}, as proxies do"


def test_a_browser_and_curl_on_this_machine_may_call() -> None:
    names = (
        *("accept", "accept-encoding", "accept-language", "authorization", "cache-control", "connection"),
        *("content-length", "content-type", "cookie", "dnt", "if-none-match", "priority", "referer", "te"),
        *(
            "sec-ch-ua",
            "sec-fetch-mode",
            "sec-fetch-site",
            "upgrade-insecure-requests",
            "user-agent",
            "x-requested-with",
        ),
        *("x-stainless-lang", "x-request-id", "traceparent", "expect", "transfer-encoding", "http2-settings"),
    )
    headers = [HERE, *((name.encode(), b"x") for name in names)]
    assert sign_of_a_stranger(headers, "127.0.0.1", http_version="1.1") is None


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:8000", "https://[::1]"])
def test_a_page_from_here_may_call(origin: str) -> None:
    assert sign_of_a_stranger([HERE, (b"origin", origin.encode())], "127.0.0.1") is None


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost.evil.example", "null", "", "file://"])
def test_a_page_of_another_origin_may_not_call(origin: str) -> None:
    assert "Origin" in str(sign_of_a_stranger([HERE, (b"origin", origin.encode())], "127.0.0.1"))


def test_a_page_of_a_trusted_origin_may_call() -> None:
    headers = [HERE, (b"origin", b"https://chat.example")]
    assert sign_of_a_stranger(headers, "127.0.0.1", {"https://chat.example"}) is None
    assert sign_of_a_stranger(headers, "127.0.0.1", {"https://chat.example.com"})
