"""The token of a data set goes to the server that the operator named alone, wherever answers lead."""

import httpx2
import pytest

from annotation.outside.hub import _client, _library

OWN = "https://hub.labels.example"


@pytest.fixture
def sent(settings, monkeypatch) -> dict[str, str | None]:
    """What each host was sent as authorization; the own one leads to another."""
    settings.HYPAC_HUB_ENDPOINT = OWN
    _library()
    return {}


def asked(sent: dict[str, str | None], address: str, **headers: str) -> httpx2.Response:
    def answer(request: httpx2.Request) -> httpx2.Response:
        sent[str(request.url.copy_with(path="/"))] = request.headers.get("authorization")
        to = request.url.params.get("to")
        return httpx2.Response(302, headers={"location": to}) if to else httpx2.Response(200)

    with _client() as client:
        client._transport = httpx2.MockTransport(answer)
        client._mounts = {}
        return client.get(address, headers={"authorization": "Bearer hf_secret", **headers})


@pytest.mark.parametrize(
    "other",
    [
        "https://huggingface.co/",
        "https://cdn-lfs.hf.co/",
        "http://hub.labels.example/",
        "https://hub.labels.example:8443/",
        "https://hub.labels.example.evil.example/",
    ],
)
def test_no_other_server_gets_it(sent, other) -> None:
    assert asked(sent, f"{OWN}/a?to={other}").status_code == 200
    assert sent[other] is None
    # What the library asks by itself there, as for the next page of a list.
    sent.clear()
    asked(sent, f"{other}next")
    assert sent == {other: None}


def test_its_own_server_does_on_any_of_its_paths(sent) -> None:
    asked(sent, f"{OWN}/a?to={OWN}/b")
    asked(sent, "https://HUB.labels.example:443/c")
    assert set(sent.values()) == {"Bearer hf_secret"}
