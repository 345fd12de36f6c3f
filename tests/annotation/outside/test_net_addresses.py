"""Where addresses that people enter may lead: the public internet, and hosts that the server names."""

import socket

import httpcore
import pytest
from django.core.exceptions import ImproperlyConfigured

from annotation.errors import InputError
from annotation.outside.net import GuardedClient, NetError, check_url
from annotation.outside.net.urls import is_public
from hypac_site import environment
from tests.raw_server import RawServer, ok, says

NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16 169.254.169.254
172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1
239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::1 100::1 2001::1 2001:10::1 2001:db8::1
2002:7f00:1:: 2002:0a00:1:: 2002:808:808:: 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1
ff02::1 fe80::1%eth0
""".split()  # noqa: SIM905
PUBLIC = """
1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 126.1.1.1 128.0.0.1 172.15.255.255 172.32.0.1 168.63.129.17
192.0.1.1 192.167.255.255 198.17.0.1 198.20.0.1 223.255.255.255
2606:4700::1111 2a00:1450:4001::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
""".split()  # noqa: SIM905


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_of_the_public_internet(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_public_internet(address):
    assert is_public(address)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        (" https://Example.ORG ", "https://example.org"),
        ("http://example.org:80/v1?x=1#part", "http://example.org/v1?x=1"),
        ("https://example.org:8443/v1/", "https://example.org:8443/v1/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81/"),
    ],
)
def test_a_good_address_is_brought_into_its_normal_form(url, normal):
    assert check_url(url) == normal


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "1 to"),
        ("http://example.org/" + "x" * 2_000, "1 to"),
        ("example.org", "starts with http"),
        ("ftp://example.org", "starts with http"),
        ("file:///etc/passwd", "starts with http"),
        ("gopher://example.org", "starts with http"),
        ("//example.org/", "starts with http"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://example.org:0/", "1 to 65535"),
        ("http://example.org:99999/", "(no address|1 to 65535)"),
        ("http://exa mple.org/", "spaces"),
        ("http://example.org\\@127.0.0.1/", "backslashes"),
        ("http://example.org/\nHost: x", "control"),
        ("http://[::1", "no address"),
        ("http://localhost/", "network of this server"),
        ("http://app.localhost./", "network of this server"),
        ("http://127.0.0.1:8000/", "network of this server"),
        ("http://[::1]/", "network of this server"),
        ("http://[::ffff:10.0.0.1]/", "network of this server"),
        ("http://169.254.169.254/latest/", "network of this server"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(url, words):
    with pytest.raises(InputError, match=words) as caught:
        check_url(url, where="endpoint")
    assert caught.value.where == "endpoint"


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(InputError, match="out of the address") as caught:
        check_url("https://ann:hunter2@example.org/")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.0.0.1", "0"])
def test_nobody_in_the_own_network_is_reached_whatever_its_address_looks_like(host):
    with RawServer(says(ok(b"secret"))) as server:
        for name in (host, host + "."):
            with pytest.raises(NetError) as caught:
                GuardedClient().request("GET", f"http://{name}:{server.port}/")
            # A look-up may not know the odd spelling; where it does, what it finds is refused.
            assert caught.value.kind in ("refused_address", "resolve")
            assert caught.value.kind == "refused_address" or host in (
                "2130706433",
                "0x7f.0.0.1",
                "127.1",
                "0",
            )
    assert server.connections == 0


@pytest.mark.parametrize("host", ["[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"])
def test_nobody_is_reached_through_ipv6_either(host, settings):
    inside = "::1" if host == "[::1]" else "127.0.0.1"
    with RawServer(says(ok(b"secret")), host=inside) as server:
        url = f"http://{host}:{server.port}/"
        with pytest.raises(NetError) as caught:
            GuardedClient().request("GET", url)
        assert (caught.value.kind, caught.value.permanent) == ("refused_address", True)
        assert server.connections == 0
        # The way there exists: it is the guard that closes it.
        settings.HYPAC_PRIVATE_HOSTS = [host]
        assert GuardedClient().request("GET", url).content == b"secret"


class Names:
    """What names mean, in place of the resolver; a look-up of a name takes the next of its meanings."""

    def __init__(self, monkeypatch, **meanings):
        self.asked = []
        self._meanings = {name.replace("_", "."): list(found) for name, found in meanings.items()}
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host, port, *arguments, **options):
        if host not in self._meanings:
            return self._real(host, port, *arguments, **options)
        self.asked.append(host)
        found = self._meanings[host]
        meaning = found.pop(0) if len(found) > 1 else found[0]
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port),
            )
            for address in meaning
        ]


@pytest.mark.parametrize("meaning", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["2606:4700::1111", "fd00::1"]])
def test_a_name_that_leads_inside_is_refused_even_where_it_also_leads_outside(monkeypatch, meaning):
    Names(monkeypatch, trap_example=[meaning])
    with RawServer(says(ok())) as server, pytest.raises(NetError) as caught:
        GuardedClient().request("GET", f"http://trap.example:{server.port}/")
    assert caught.value.kind == "refused_address"
    assert "trap.example" in caught.value.message
    assert not any(address in caught.value.message for address in meaning)
    assert server.connections == 0


def test_a_name_that_means_another_address_a_moment_later_reaches_nobody_inside(monkeypatch):
    names = Names(monkeypatch, rebind_example=[["93.184.215.14"], ["127.0.0.1"]])
    connected = []

    def connect(self, host, port, *arguments, **options):
        connected.append(host)
        raise httpcore.ConnectError

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect)
    with RawServer(says(ok())) as server, pytest.raises(NetError) as caught:
        GuardedClient().request("GET", f"http://rebind.example:{server.port}/")
    assert caught.value.kind == "connect"
    assert connected == ["93.184.215.14"]
    assert names.asked == ["rebind.example"]
    assert server.connections == 0


def test_a_host_is_allowed_by_its_name_and_port_alone(settings, monkeypatch):
    Names(monkeypatch, gpu_internal=[["127.0.0.1"]], other_internal=[["127.0.0.1"]])
    with RawServer(says(ok())) as server, RawServer(says(ok())) as beside:
        settings.HYPAC_PRIVATE_HOSTS = [f"gpu.internal:{server.port}"]
        client = GuardedClient()
        assert client.request("GET", f"http://GPU.internal:{server.port}/").status == 200
        for refused in (
            f"http://gpu.internal:{beside.port}/",
            f"http://other.internal:{server.port}/",
            f"http://127.0.0.1:{server.port}/",
        ):
            with pytest.raises(NetError) as caught:
                client.request("GET", refused)
            assert caught.value.kind == "refused_address"
        settings.HYPAC_PRIVATE_HOSTS = ["gpu.internal"]
        assert client.request("GET", f"http://gpu.internal:{beside.port}/").status == 200


def test_the_next_address_of_a_name_is_tried(settings, monkeypatch):
    Names(monkeypatch, both_internal=[["::1", "127.0.0.1"]])
    settings.HYPAC_PRIVATE_HOSTS = ["both.internal"]
    with RawServer(says(ok())) as server:
        assert GuardedClient().request("GET", f"http://both.internal:{server.port}/").status == 200


def test_a_name_that_nobody_knows(monkeypatch):
    def look_up(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(NetError, match="is not known") as caught:
        GuardedClient().request("GET", "http://no-such-host.example/")
    assert (caught.value.kind, caught.value.permanent) == ("resolve", False)


def test_hosts_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("HYPAC_PRIVATE_HOSTS", "localhost:8001, GPU.internal,10.0.0.5,[fd00::5]:8000")
    assert environment.hosts("HYPAC_PRIVATE_HOSTS") == [
        "localhost:8001",
        "gpu.internal",
        "10.0.0.5",
        "[fd00::5]:8000",
    ]


@pytest.mark.parametrize("value", ["http://gpu", "10.0.0.0/8", "*", "*.internal", "::1", "gpu:port", "a b"])
def test_what_is_no_host_stops_the_start(monkeypatch, value):
    monkeypatch.setenv("HYPAC_PRIVATE_HOSTS", value)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_PRIVATE_HOSTS"):
        environment.hosts("HYPAC_PRIVATE_HOSTS")
