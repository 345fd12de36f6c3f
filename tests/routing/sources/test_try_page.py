"""The page of a try: what it says of answers that are old or cannot be used."""

from decimal import Decimal

import pytest

from testbed.scripted_server import Reply
from tests.routing.sources.test_source_pages import add, client, do, fields, page, project, server, url_of

__all__ = ["client", "project", "server"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_answers_to_an_older_prompt_are_marked(client, project, server) -> None:
    source = add(client, project, server)
    rows = {"examples-TOTAL_FORMS": "0", "examples-INITIAL_FORMS": "0"}

    def tried() -> str:
        client.post(url_of("source_try", source))
        do(source)
        return page(client, "source_try", source)

    assert "changed since" not in tried()
    client.post(url_of("source_prompt", source), {"template": "one {{ text }}", **rows})
    assert "with the default prompt, which has been changed since" in page(client, "source_try", source)
    assert "changed since" not in tried()
    client.post(url_of("source_prompt", source), {"template": "two {{ text }}", **rows})
    assert "with version 1 of the prompt, which has been changed since" in page(client, "source_try", source)
    assert "changed since" not in tried()
    client.post(url_of("source_edit", source), fields(server, max_tokens="9"))
    assert "How the source is asked" in page(client, "source_try", source)


def test_a_long_refusal_is_shown_once_and_says_that_it_goes_on(client, project, server) -> None:
    source = add(client, project, server)
    said = "The prompt is longer than the model can read. " * 9
    server.default = lambda request: (
        Reply(400, {"error": {"message": said}}) if "text" in request.prompt else "cat"
    )
    client.post(url_of("source_try", source))
    do(source)
    (tried,) = source.tries.all()
    assert {len(row["reason"]) for row in tried.rows} <= set(range(190, 201))
    assert all("…" in row["reason"] or "..." in row["reason"] for row in tried.rows)
    shown = page(client, "source_try", source)
    assert shown.count("the server refused it (400)") == 5


def test_answers_that_cannot_be_used_tell_no_price(client, project, server) -> None:
    source = add(client, project, server, cost_function="tokens", per_token="0.25")
    server.default = "cow"
    client.post(url_of("source_try", source))
    do(source)
    shown = page(client, "source_try", source)
    assert 'class="none"' in shown
    assert "Use the mean cost" not in shown
    answer = client.post(url_of("source_try_price", source), follow=True)
    assert "they tell no price" in answer.content.decode()
    source.refresh_from_db()
    assert source.cost_per_label == Decimal("0.5")
