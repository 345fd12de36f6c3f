"""Which address the web servers, as processes, take a request to be from: headers mint none."""

import http.client
from urllib.parse import urlencode

import pytest

from annotation.models import AttemptBucket
from tests.services.web_process import serving
from tests.support import child_environment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("server", ["waitress", "gunicorn"])
@pytest.mark.parametrize("behind_proxy", ["0", "1"])
def test_no_header_of_the_asker_mints_an_address(server: str, behind_proxy: str) -> None:
    """Behind a proxy the last value is the proxy's, also where the asker sent lines of that header before."""
    environment = child_environment(
        HYPAC_BEHIND_PROXY=behind_proxy, HYPAC_LOGIN_ADDRESS_RATE="3/hour", HYPAC_LOGIN_RATE="100/hour"
    )
    with serving(server, environment) as port:
        found = []
        for number in range(6):
            made_up = f"203.0.113.{number}"
            lines = [("X-Forwarded-For", made_up), ("X-Forwarded-For", f"{made_up}, {made_up}")]
            if behind_proxy == "1":
                lines.append(("X-Forwarded-For", f"198.51.100.7:{40_000 + number}"))
            lines += [("X_Forwarded_For", made_up), ("Forwarded", f"for={made_up}"), ("X-Real-IP", made_up)]
            found.append(_log_in(port, lines))
    assert found == [200] * 3 + [429] * 3
    names = set(AttemptBucket.objects.values_list("name", flat=True))
    seen = "198.51.100.7" if behind_proxy == "1" else "127.0.0.1"
    assert names == {f"address:{seen}", "all:unknown"}


def _log_in(port: int, lines: list[tuple[str, str]]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/login/")
    answer = connection.getresponse()
    answer.read()
    token = str(answer.headers["Set-Cookie"]).partition("csrftoken=")[2].partition(";")[0]
    body = urlencode({"csrfmiddlewaretoken": token, "username": "ann", "password": "wrong"})
    connection.putrequest("POST", "/login/")
    own = [("Cookie", f"csrftoken={token}"), ("Content-Type", "application/x-www-form-urlencoded")]
    for name, value in [*own, ("Content-Length", str(len(body))), *lines]:
        connection.putheader(name, value)
    connection.endheaders(body.encode())
    status = connection.getresponse().status
    connection.close()
    return status
