"""The client for addresses that people enter, over TLS."""

import datetime
import json
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from annotation.outside.net import GuardedClient, NetError
from tests.annotation.outside.net_requests import SHORT, refusal, url_of
from tests.raw_server import RawServer, ok, says, silent


@pytest.fixture(autouse=True)
def _private(settings):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1", "localhost"]


@pytest.fixture
def client():
    made = GuardedClient()
    yield made
    made.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that nobody signed, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return file


def _tls(certificate, answer):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as encrypted:
            says(answer)(encrypted)

    return handle


def test_a_certificate_that_nobody_trusts_is_refused(client, certificate):
    with RawServer(_tls(certificate, ok(b"secret"))) as server:
        assert refusal(client, server, scheme="https") == ("tls", True)


def test_a_certificate_authority_of_ones_own_is_trusted_for_its_name_alone(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    from annotation.outside.net.client import _tls as trusted

    trusted.cache_clear()
    try:
        client = GuardedClient()
    finally:
        trusted.cache_clear()
    with RawServer(_tls(certificate, ok(json.dumps({"a": 1}).encode()))) as server:
        for _ in range(2):
            assert client.request("GET", f"https://localhost:{server.port}/").json() == {"a": 1}
        assert server.connections == 1
        assert refusal(client, server, scheme="https") == ("tls", True)


def test_a_server_that_does_not_speak_tls(client):
    def plain(connection):
        connection.recv(1024)
        connection.sendall(b"HTTP/1.1 400 secret\r\n\r\n")

    with RawServer(plain) as server:
        with pytest.raises(NetError, match="speak https") as caught:
            client.request("GET", url_of(server, scheme="https"))
        assert (caught.value.kind, caught.value.permanent) == ("tls", False)


def test_a_handshake_does_not_outlast_the_deadline():
    client = GuardedClient(connect_timeout=20, total_timeout=SHORT)
    with RawServer(silent) as server:
        assert refusal(client, server, scheme="https") == ("timeout", False)
