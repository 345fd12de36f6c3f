"""Requests that are sent again under their key are done once."""

import json
from datetime import timedelta
from io import BytesIO
from threading import Barrier, Thread
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.common.api import idempotency
from annotation.common.api.idempotency import forget_old
from annotation.models import ApiToken, KeyedRequest, Project, StoredFile, User
from annotation.people.tokens import make_token
from testbed.factories import make_project, make_user

pytestmark = [pytest.mark.database, pytest.mark.costly]

PROJECTS = "/api/v1/projects/"
BODY = {"name": "Reviews", "choices": [{"name": "good"}, {"name": "bad"}]}


@pytest.fixture
def user(db) -> User:
    return make_user("ada")


@pytest.fixture
def secret(user) -> str:
    return make_token(user=user, name="x")[1]


def post(secret: str, body: object, key: str = "k-1", path: str = PROJECTS):
    headers = {"Authorization": f"Token {secret}", "Idempotency-Key": key}
    return Client(raise_request_exception=False).post(
        path, body, content_type="application/json", headers=headers
    )


def test_the_same_again_is_the_same_answer(secret) -> None:
    first, again = post(secret, BODY), post(secret, BODY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert "Idempotency-Replayed" not in first.headers
    assert Project.objects.count() == 1
    assert post(secret, BODY, key='"k-1"').headers["Idempotency-Replayed"] == "true"
    assert post(secret, BODY, key="k-2").status_code == 201
    assert Project.objects.count() == 2


def test_another_request_under_the_key_is_an_error(secret, user) -> None:
    assert post(secret, BODY).status_code == 201
    other = post(secret, {**BODY, "name": "Other"})
    assert other.status_code == other.json()["status"] == 422
    project = Project.objects.get()
    assert post(secret, {}, path=f"{PROJECTS}{project.slug}/queue/claim/").status_code == 422
    assert Project.objects.count() == 1


def test_a_precondition_belongs_to_the_request(secret, user) -> None:
    slug = make_project(user).slug
    client = Client()

    def change(key: str, **headers: str):
        sent = {"Authorization": f"Token {secret}", "Idempotency-Key": key, **headers}
        return client.patch(
            f"{PROJECTS}{slug}/", {"currency": "DKK"}, content_type="application/json", headers=sent
        )

    tag = client.get(f"{PROJECTS}{slug}/", headers={"Authorization": f"Token {secret}"})["ETag"]
    assert change("a", **{"If-Match": '"old"'}).status_code == 412
    done = change("a", **{"If-Match": tag})  # nothing was done before
    assert (done.status_code, "Idempotency-Replayed" in done.headers) == (200, False)
    assert done["ETag"] != tag
    assert change("a", **{"If-Match": tag}).headers["Idempotency-Replayed"] == "true"
    for other in ({}, {"If-Match": done["ETag"]}):
        assert change("a", **other).status_code == 422


def test_the_same_bytes_as_something_else_are_another_request(user, secret) -> None:
    path = f"{PROJECTS}{make_project(user).slug}/items/?id_column=id&text_column=text"

    def send(kind: str):
        headers = {"Authorization": f"Token {secret}", "Idempotency-Key": "k"}
        body = b'{"id": "1", "text": "t"}'
        return Client().generic("POST", path, body, content_type=kind, headers=headers)

    assert send("application/x-ndjson").status_code == 202
    assert send("application/json").status_code == 422
    assert send("Application/X-NDJSON").headers["Idempotency-Replayed"] == "true"


def test_whoever_has_many_keys_waits_for_new_ones(secret, monkeypatch) -> None:
    monkeypatch.setattr(idempotency, "MOST_KEYS", 2)
    assert [post(secret, BODY, key=key).status_code for key in "abc"] == [201, 201, 429]
    full = post(secret, BODY, key="c")
    assert "At most 2 requests" in full.json()["detail"]
    assert 23 * 3600 < int(full.headers["Retry-After"]) <= 24 * 3600
    assert Project.objects.count() == 2
    assert post(secret, BODY, key="a").headers["Idempotency-Replayed"] == "true"
    other = make_token(user=make_user("bob"), name="x")[1]
    assert post(other, BODY).status_code == 201
    KeyedRequest.objects.filter(key="a").update(created_at=timezone.now() - timedelta(hours=25))
    forget_old()
    cache.clear()
    assert post(secret, BODY, key="c").status_code == 201


def test_of_many_answers_the_oldest_are_only_known_to_be_given(secret, monkeypatch) -> None:
    monkeypatch.setattr(idempotency, "LOOKED_AFTER_EVERY", 1)
    size = len(post(secret, BODY, key="a").content)
    monkeypatch.setattr(idempotency, "MOST_BYTES", 2 * size + size // 2)
    for key in "bcd":
        assert post(secret, BODY, key=key).status_code == 201
    forgotten = [post(secret, BODY, key=key) for key in "ab"]
    assert [answer.status_code for answer in forgotten] == [409, 409]
    assert "done before" in forgotten[0].json()["detail"]
    assert [post(secret, BODY, key=key).headers["Idempotency-Replayed"] for key in "cd"] == ["true"] * 2
    assert Project.objects.count() == 4


def test_a_refusal_is_kept_too(secret) -> None:
    wrong = {**BODY, "colour": 1}
    assert post(secret, wrong).status_code == 400
    assert post(secret, wrong).headers["Idempotency-Replayed"] == "true"


def test_one_that_is_being_worked_on_is_told_so(secret) -> None:
    assert post(secret, BODY).status_code == 201
    KeyedRequest.objects.update(status=None, body=None)
    again = post(secret, BODY)
    assert (again.status_code, again.headers["Retry-After"]) == (409, "1")
    assert "still being worked on" in again.json()["detail"]


def test_one_whose_process_died_may_have_been_done_and_is_not_done_again(secret, user) -> None:
    """As after `kill -9` between what a request did and the storing of its answer."""
    assert post(secret, BODY).status_code == 201
    KeyedRequest.objects.update(status=None, body=None, created_at=timezone.now() - timedelta(minutes=61))
    forget_old()
    again = post(secret, BODY)
    assert again.status_code == 409
    assert "Retry-After" not in again.headers
    assert "nobody knows" in again.json()["detail"]
    assert Project.objects.count() == 1
    assert post(secret, BODY, key="k-2").status_code == 201


def test_a_failure_of_the_server_is_not_kept(secret, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("annotation.projects.api.create_project", lambda **_: 1 / 0)
        assert post(secret, BODY).status_code == 500
    assert post(secret, BODY).status_code == 201


def test_a_secret_is_not_kept_and_not_made_twice(user) -> None:
    client = Client()
    client.force_login(user)
    sent = {"content_type": "application/json", "headers": {"Idempotency-Key": "k"}}
    first = client.post("/api/v1/tokens/", {"name": "ci"}, **sent)
    assert first.status_code == 201
    assert client.post("/api/v1/tokens/", {"name": "ci"}, **sent).status_code == 409
    assert ApiToken.objects.count() == 1
    assert KeyedRequest.objects.get().body is None


def test_keys_are_of_one_person(secret) -> None:
    other = make_token(user=make_user("bob"), name="x")[1]
    assert post(secret, BODY).status_code == post(other, BODY).status_code == 201
    assert Project.objects.count() == 2


@pytest.mark.parametrize("key", ["", "ä", "a b", "x" * 256])
def test_what_is_no_key(key: str, secret) -> None:
    answer = post(secret, BODY, key=key)
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")


def test_a_key_on_a_request_that_only_reads_does_nothing(secret) -> None:
    headers = {"Authorization": f"Token {secret}", "Idempotency-Key": "k"}
    assert Client().get(PROJECTS, headers=headers).status_code == 200
    assert not KeyedRequest.objects.exists()


def test_after_a_day_it_is_forgotten(secret) -> None:
    post(secret, BODY)
    KeyedRequest.objects.update(created_at=timezone.now() - timedelta(hours=25))
    forget_old()
    assert not KeyedRequest.objects.exists()


def test_files_are_compared_by_what_is_in_them(user) -> None:
    """Each try of a form has another boundary."""
    project = make_project(user)
    secret = make_token(user=user, name="x")[1]

    def send(text: bytes):
        headers = {"Authorization": f"Token {secret}", "Idempotency-Key": "k"}
        form = {"file": SimpleUploadedFile("a.csv", text, "text/csv")}
        return Client().post(f"{PROJECTS}{project.slug}/files/", form, headers=headers)

    assert send(b"text\nx\n").status_code == 201
    assert send(b"text\nx\n").headers["Idempotency-Replayed"] == "true"
    assert send(b"text\ny\n").status_code == 422
    assert StoredFile.objects.filter(project=project).count() == 1


def test_a_large_body_is_hashed_while_it_is_read(user, settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    project = make_project(user)
    secret = make_token(user=user, name="x")[1]

    def send(last: str):
        lines = [json.dumps({"id": n, "text": "word " * 20}) for n in range(100)]
        body = "\n".join([*lines, json.dumps({"id": "last", "text": last})]).encode()
        headers = {"Authorization": f"Token {secret}", "Idempotency-Key": "k"}
        return Client().generic(
            "POST",
            f"{PROJECTS}{project.slug}/items/?id_column=id&text_column=text",
            body,
            content_type="application/x-ndjson",
            headers=headers,
        )

    first = send("a")
    assert first.status_code == 202, first.content
    assert send("a").headers["Idempotency-Replayed"] == "true"
    assert send("a").json()["id"] == first.json()["id"]
    assert send("b").status_code == 422
    assert project.jobs.count() == 1


@pytest.mark.parametrize("in_memory", [10, 100_000])
def test_one_that_broke_off_is_done_when_it_comes_whole(user, settings, in_memory) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = in_memory
    project = make_project(user)
    secret = make_token(user=user, name="x")[1]
    lines = b"".join(json.dumps({"id": n, "text": f"t{n}"}).encode() + b"\n" for n in range(50))

    def send(body: bytes):
        return Client().generic(
            "POST",
            f"{PROJECTS}{project.slug}/items/?id_column=id&text_column=text",
            b"",
            headers={"Authorization": f"Token {secret}", "Idempotency-Key": "k"},
            CONTENT_TYPE="application/x-ndjson",
            CONTENT_LENGTH=str(len(lines)),
            **{"wsgi.input": BytesIO(body)},
        )

    assert send(lines[:400]).status_code == 400
    assert send(lines).status_code == 202
    assert send(lines[:400]).status_code == 400
    assert send(lines).headers["Idempotency-Replayed"] == "true"
    assert project.jobs.count() == 1


def test_a_body_in_pieces_is_told_from_another(user) -> None:
    """Nobody says how long it is, and Django reads nothing of it."""
    project = make_project(user)
    secret = make_token(user=user, name="x")[1]

    def send(text: str):
        return Client().generic(
            "POST",
            f"{PROJECTS}{project.slug}/items/?id_column=id&text_column=text",
            b"",
            headers={"Authorization": f"Token {secret}", "Idempotency-Key": "k"},
            CONTENT_TYPE="application/x-ndjson",
            **in_pieces(json.dumps({"id": "1", "text": text}).encode()),
        )

    assert send("a").status_code == 202
    assert send("a").headers["Idempotency-Replayed"] == "true"
    assert send("b").status_code == 422
    assert project.jobs.count() == 1


def test_a_body_in_pieces_is_not_passed_over(user) -> None:
    client = Client()
    client.force_login(user)
    answer = client.generic(
        "POST", PROJECTS, b"", CONTENT_TYPE="application/json", **in_pieces(json.dumps(BODY).encode())
    )
    assert answer.status_code == 411, answer.content
    assert not Project.objects.exists()


def in_pieces(body: bytes) -> dict[str, object]:
    """What a server adds that passes on a chunked body."""
    return {
        "CONTENT_LENGTH": "",
        "HTTP_TRANSFER_ENCODING": "chunked",
        "wsgi.input": BytesIO(body),
        "wsgi.input_terminated": True,
    }


def test_secrets_of_webhooks_are_not_kept(user) -> None:
    base = f"{PROJECTS}{make_project(user).slug}/webhooks/"
    client = Client()
    client.force_login(user)

    def send(path: str, body: object, key: str):
        return client.post(path, body, content_type="application/json", headers={"Idempotency-Key": key})

    made = send(base, {"url": "https://hooks.example.com/x", "events": ["label.created"]}, "made")
    assert made.json()["secret"]
    rotated = send(f"{base}{made.json()['id']}/rotate/", {}, "rotated")
    assert rotated.json()["secret"]
    assert [row.body for row in KeyedRequest.objects.all()] == [None, None]


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_is_done() -> None:
    secret = make_token(user=make_user("ada"), name="x")[1]
    barrier, found = Barrier(4, timeout=300), []

    def send() -> None:
        barrier.wait()
        found.append(post(secret, BODY).status_code)
        connection.close()

    threads = [Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Project.objects.count() == 1
    assert set(found) <= {201, 409}
    assert 201 in found


def test_keys_are_not_counted_at_each_request(secret, user, monkeypatch) -> None:
    monkeypatch.setattr(idempotency, "MOST_KEYS", 4)

    def counts(key: str) -> tuple[int, int]:
        with CaptureQueriesContext(connection) as asked:
            status = post(secret, BODY, key=key).status_code
        return status, sum("COUNT(" in query["sql"] for query in asked if "keyedrequest" in query["sql"])

    assert [counts(key) for key in "abcdef"] == [(201, 1), *[(201, 0)] * 3, (429, 1), (429, 0)]
    monkeypatch.setattr(timezone, "now", lambda now=timezone.now: now() + timedelta(hours=24))
    forget_old()
    assert counts("e") == (201, 1)


def test_a_deleted_project_is_not_there_for_the_key_either(user, secret) -> None:
    """As docs/api.md says: 404 when it is sent again."""
    project = make_project(user)
    path = f"{PROJECTS}{project.slug}/?name={quote(project.name)}"
    headers = {"Authorization": f"Token {secret}", "Idempotency-Key": "k"}
    assert [Client().delete(path, headers=headers).status_code for _ in range(2)] == [204, 404]
