"""Beacons are asked by HTTP, and what they say is taken only where it is the value that was named."""

from datetime import UTC, datetime, timedelta

import pytest

from hypac_verify.commitments import QUICKNET, time_of
from routing.runs import beacons
from routing.runs.beacons import BEACONS, draw_from_of, fetched
from testbed.scripted_server import Reply, ScriptedServer
from testbed.worlds import make_world

pytestmark = pytest.mark.costly
VALUE = {"drand": "5e" * 32, "nist": "a7" * 64}
NOW = datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)


@pytest.fixture
def server(settings):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with ScriptedServer() as made:
        settings.HYPAC_DRAND_URL = settings.HYPAC_NIST_BEACON_URL = f"http://127.0.0.1:{made.port}"
        yield made


def said(named, value):
    """What the beacon's own server answers of the value that a commitment names."""
    if named["kind"] == "drand":
        return {"round": named["round"], "randomness": value, "signature": "b4" * 48}
    at = named["time"].replace("Z", ".000Z")
    pulse = {"uri": "https://beacon.example/pulse/1", "version": "Version 2.0", "period": 60_000}
    return {"pulse": {**pulse, "timeStamp": at, "localRandomValue": "00" * 64, "outputValue": value.upper()}}


def path_of(named):
    return BEACONS[named["kind"]].address(named).partition("127.0.0.1")[2].partition("/")[2]


@pytest.mark.parametrize("kind", VALUE)
def test_the_named_value_is_asked_for(server, kind):
    named = draw_from_of(kind, NOW)
    server.route("GET", f"/{path_of(named)}", said(named, VALUE[kind]))
    assert fetched(named) == VALUE[kind]
    assert NOW + beacons.LEAD <= datetime.fromisoformat(named["time"]) <= NOW + timedelta(minutes=2)


def test_addresses_are_those_of_the_documented_interfaces(settings):
    drand, nist = (draw_from_of(kind, NOW) for kind in VALUE)
    assert BEACONS["drand"].address(drand) == (
        f"{settings.HYPAC_DRAND_URL}/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
        f"/public/{drand['round']}"
    )
    at = int(datetime(2026, 3, 1, 12, 1, tzinfo=UTC).timestamp() * 1000)
    assert BEACONS["nist"].address(nist) == f"{settings.HYPAC_NIST_BEACON_URL}/pulse/time/{at}"


@pytest.mark.parametrize(
    "answer",
    [
        Reply(404, {"error": "not yet"}),
        Reply(425, b"too early"),
        Reply(500, b""),
        Reply(302, b"", headers={"Location": "/elsewhere"}),
        b"<html>maintenance</html>",
        [],
        {"pulse": None},
        {"round": "7", "randomness": "5e" * 32},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", VALUE)
def test_nothing_else_is_taken(server, kind, answer):
    named = draw_from_of(kind, NOW)
    server.route("GET", f"/{path_of(named)}", answer)
    assert fetched(named) is None
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", VALUE)
def test_neither_the_value_of_another_time_nor_one_of_another_length(server, kind):
    named, other = draw_from_of(kind, NOW), draw_from_of(kind, NOW + timedelta(minutes=5))
    for wrong in (said(other, VALUE[kind]), said(named, VALUE[kind][:-2]), said(named, "x" * 64)):
        server.route("GET", f"/{path_of(named)}", wrong)
        assert fetched(named) is None


def test_an_answer_without_end_is_not_read_to_its_end(server):
    named = draw_from_of("drand", NOW)
    server.route("GET", f"/{path_of(named)}", said(named, VALUE["drand"]) | {"more": "x" * 2**17})
    assert fetched(named) is None


def test_an_address_inside_the_own_network_is_not_asked(server, settings):
    settings.HYPAC_PRIVATE_HOSTS = []
    named = draw_from_of("drand", NOW)
    server.route("GET", f"/{path_of(named)}", said(named, VALUE["drand"]))
    assert fetched(named) is None
    assert server.requests == []


@pytest.mark.django_db
def test_a_run_is_drawn_from_what_the_beacon_says(server, monkeypatch):
    monkeypatch.setattr(beacons, "LEAD", timedelta(0))
    named = {}

    def asked_for(kind, now, real=draw_from_of):
        named.update(real(kind, now))
        server.route("GET", f"/{path_of(named)}", said(named, VALUE["drand"]))
        return dict(named)

    monkeypatch.setattr("routing.runs.commitments.draw_from_of", asked_for)
    run = make_world(60).calibrating(m=30, draw_from="drand")
    assert run.draw.randomness == {"kind": "drand", "value": VALUE["drand"]}
    assert [request.path for request in server.requests] == [f"/{path_of(named)}"]


def test_a_round_of_drand_comes_when_it_comes() -> None:
    named = draw_from_of("drand", NOW)
    assert (named["chain"], named["time"]) == (QUICKNET, time_of(named["round"]))
    assert time_of(named["round"] + 1) != named["time"]
    assert [time_of(number) for number in (0, -1, "1", 10**30)] == [""] * 4
