"""Passkeys as a second step and alone, with an authenticator in software; a browser is in tests/browser."""

import html
import json
import re
import time
from collections.abc import Iterator

import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client

from annotation.models import AuditEvent, Passkey, User
from annotation.people.second_factor import change, passkeys
from annotation.people.second_factor.passkeys import SECONDS
from testbed.factories import PASSWORD, made_account, make_project, make_user
from tests.passkey import Authenticator

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PAGE, STEP, ALONE = "/account/second-step/", "/login/second-step/", "/login/passkey/"


@pytest.fixture
def ann() -> User:
    return make_user("ann")


def options_in(response) -> str:
    found = re.search(r'data-options="([^"]*)"', response.content.decode())
    assert found
    return html.unescape(found[1])


def add(user: User, key: Authenticator, name: str = "laptop"):
    """The answer to what the browser made; by somebody who is logged in by `user`'s password."""
    client = Client()
    client.force_login(user, "annotation.people.log_in.PasswordBackend")
    begun = client.post(f"{PAGE}passkeys/new/", {"name": name, "password": PASSWORD})
    assert begun["Location"] == f"{PAGE}passkeys/create/"
    made = key.make(options_in(client.get(begun["Location"])))
    answer = client.post(begun["Location"], {"credential": made})
    user.refresh_from_db(fields=["sessions_ended"])
    return answer


@pytest.fixture
def key(ann) -> Authenticator:
    key = Authenticator()
    assert "Recovery codes" in add(ann, key).content.decode()
    return key


def alone(key: Authenticator, client: Client | None = None, **changes):
    """The answer to a log-in by nothing but the passkey."""
    client = client or Client()
    shown = json.loads(key.show(options_in(client.get(ALONE))))
    shown["response"] |= changes
    return client.post(f"{ALONE}?next=/account/", {"credential": json.dumps(shown)})


def test_several_are_added_by_name_with_the_password_and_removed(ann, key) -> None:
    client = Client()
    client.force_login(ann)
    answer = client.post(f"{PAGE}passkeys/new/", {"name": "x", "password": "wrong"})
    assert "That is not your password" in answer.content.decode()
    assert client.get(f"{PAGE}passkeys/create/")["Location"] == f"{PAGE}passkeys/new/"
    assert add(ann, Authenticator(), "blue <key>")["Location"] == PAGE, "recovery codes are there already"
    assert "known already" in add(ann, key).content.decode()
    client.force_login(ann)
    assert "blue &lt;key&gt;" in client.get(PAGE).content.decode()
    assert len({passkey.handle for passkey in Passkey.objects.all()}) == 1

    first = Passkey.objects.first()
    path = f"{PAGE}passkeys/{first.pk}/remove/"
    assert client.post(path, {"password": "wrong"}).status_code == 200
    assert client.post(path, {"password": PASSWORD})["Location"] == PAGE
    assert [passkey.name for passkey in Passkey.objects.all()] == ["blue <key>"]
    told = AuditEvent.objects.filter(data__user=ann.pk).order_by("pk").values_list("action", flat=True)
    assert list(told) == ["account.passkey_added"] * 2 + ["account.passkey_removed"]
    other = Client()
    other.force_login(make_user("bob"))
    rest = Passkey.objects.get()
    assert other.post(f"{PAGE}passkeys/{rest.pk}/remove/", {"password": PASSWORD}).status_code == 404


def test_a_new_one_ends_the_other_sessions_and_this_device_stays_known(ann) -> None:
    here, other = Client(), Client()
    for client in (here, other):
        client.post("/login/", {"username": "ann", "password": PASSWORD})
    before = here.cookies["known_device"].value
    here.post(f"{PAGE}passkeys/new/", {"name": "laptop", "password": PASSWORD})
    asked = options_in(here.get(f"{PAGE}passkeys/create/"))
    assert other.get(PAGE).status_code == 200
    done = here.post(f"{PAGE}passkeys/create/", {"credential": Authenticator().make(asked)})
    assert "Other devices have to log in again." in done.content.decode()
    assert other.get(PAGE).status_code == 302
    assert here.get(PAGE).status_code == 200
    assert here.cookies["known_device"].value != before


@pytest.mark.parametrize(
    "key", [Authenticator(origin="https://evil.example"), Authenticator(verifies=False), Authenticator()]
)
def test_one_of_another_site_or_without_a_finger_or_that_is_cut_off_is_not_taken(ann, key) -> None:
    if key.verifies and key.origin == "https://testserver":
        make = key.make
        key.make = lambda options: make(options)[:-9]
    assert "That did not succeed" in add(ann, key).content.decode()
    assert not Passkey.objects.exists()


def test_it_lets_in_by_itself_without_a_name(ann, key) -> None:
    client = Client()
    asked = json.loads(options_in(client.get(ALONE)))
    assert (asked["userVerification"], asked.get("allowCredentials")) == ("required", None)
    session = client.session.session_key
    assert alone(key, client)["Location"] == "/account/"
    assert client.session[SESSION_KEY] == str(ann.pk)
    assert client.session.session_key != session
    assert "known_device" in client.cookies


def test_after_the_password_only_a_passkey_of_that_account_is_the_second_step(ann, key) -> None:
    bobs = Authenticator()
    add(make_user("bob"), bobs)
    client = Client()
    client.post("/login/", {"username": "ann", "password": PASSWORD, "next": "/account/"})
    asked = json.loads(options_in(client.get(STEP)))
    assert len(asked["allowCredentials"]) == 1
    assert (
        "does not let you in"
        in client.post(STEP, {"credential": bobs.show(json.dumps(asked))}).content.decode()
    )
    assert SESSION_KEY not in client.session
    shown = key.show(options_in(client.get(STEP)))
    assert client.post(STEP, {"credential": shown})["Location"] == "/account/"


def test_an_answer_holds_once_and_in_its_own_session(ann, key) -> None:
    client = Client()
    shown = key.show(options_in(client.get(ALONE)))
    other = Client()
    other.get(ALONE)
    assert "does not let you in" in other.post(ALONE, {"credential": shown}).content.decode()
    assert Client().post(ALONE, {"credential": shown}).status_code == 200
    assert client.post(ALONE, {"credential": shown}).status_code == 302
    client.post("/logout/")
    assert client.post(ALONE, {"credential": shown}).status_code == 200


@pytest.mark.parametrize(("seconds", "lets_in"), [(SECONDS - 5, True), (SECONDS + 5, False)])
def test_what_was_asked_is_to_be_answered_in_time(ann, key, monkeypatch, seconds, lets_in) -> None:
    alone_, second, third = Client(), Client(), Client()
    second.post("/login/", {"username": "ann", "password": PASSWORD})
    third.force_login(ann, "annotation.people.log_in.PasswordBackend")
    third.post(f"{PAGE}passkeys/new/", {"name": "new", "password": PASSWORD})
    new = Authenticator().make(options_in(third.get(f"{PAGE}passkeys/create/")))
    asked = {client: options_in(client.get(path)) for client, path in ((alone_, ALONE), (second, STEP))}
    assert json.loads(asked[alone_])["timeout"] == SECONDS * 1000
    now = time.time()
    monkeypatch.setattr(passkeys.time, "time", lambda: now + seconds)
    found = [alone_.post(ALONE, {"credential": key.show(asked[alone_])}).status_code == 302]
    found.append(second.post(STEP, {"credential": key.show(asked[second])}).status_code == 302)
    third.post(f"{PAGE}passkeys/create/", {"credential": new})
    found.append(Passkey.objects.count() == 2)
    assert found == [lets_in] * 3


def test_one_answer_holds_once_even_where_two_requests_have_read_the_same_session(ann, key, rf) -> None:
    request = rf.get("/", secure=True)
    asked = passkeys.begin_authentication(request)
    key.count = -1  # as passkeys that are synchronised do: they count nothing
    good = key.show(asked.options)
    assert passkeys.finish_authentication(request, asked.state, good)
    assert passkeys.finish_authentication(request, asked.state, good) is None
    asked = passkeys.begin_registration(request, ann, handle="AAAA")
    new = Authenticator().make(asked.options)
    assert passkeys.finish_registration(request, asked.state, new)
    assert passkeys.finish_registration(request, asked.state, new) is None


def test_a_copy_that_counts_back_another_site_or_no_finger_does_not_let_in(ann, key) -> None:
    alone(key)
    key.count -= 1
    assert alone(key).status_code == 200
    key.count += 1
    key.origin = "https://evil.example"
    assert alone(key).status_code == 200
    key.origin, key.verifies = "https://testserver", False
    assert alone(key).status_code == 200
    key.verifies = True
    assert alone(key, signature="MEUCIQ").status_code == 200
    assert alone(key, userHandle="AAAA").status_code == 200
    assert alone(key).status_code == 302


def broken(answer: str) -> Iterator[str]:
    """What a stranger might send in place of a good answer."""
    good = json.loads(answer)
    yield from ("", "[]", "1", "{}", "[" * 10_000, '{"rawId": 1}', "\0", '"\\ud800"', "x" * 30_000)
    for part in good:
        for value in (None, 1, [], {}, "ä", "AA"):
            yield json.dumps({**good, part: value})
    for part, told in good["response"].items():
        for value in (None, 1, [], {}, "ä", "AA", told[:-7], told[:9] + told[13:]):
            yield json.dumps({**good, "response": {**good["response"], part: value}})


def test_whatever_a_stranger_sends_is_no_passkey(ann, key, rf, monkeypatch) -> None:
    request = rf.get("/", secure=True)
    monkeypatch.setattr(passkeys.once, "use", lambda *_, **_options: True)  # one challenge for all of them
    asked = passkeys.begin_authentication(request)
    good = key.show(asked.options)
    found = [passkeys.finish_authentication(request, asked.state, answer) for answer in broken(good)]
    # Neither "type" nor, where it names nobody, the handle are part of what is signed.
    assert {passkey.pk for passkey in found if passkey} <= {Passkey.objects.get().pk}
    asked = passkeys.begin_registration(request, ann, handle="AAAA")
    good = Authenticator().make(asked.options)
    assert passkeys.finish_registration(request, asked.state, good)
    assert None in [passkeys.finish_registration(request, asked.state, answer) for answer in broken(good)]


def test_somebody_switched_off_stays_out(ann, key) -> None:
    User.objects.update(is_active=False)
    assert "does not let you in" in alone(key).content.decode()


def test_whoever_made_an_account_does_not_come_back_by_a_passkey_of_theirs() -> None:
    """The owner knows the first password; then its holder chooses one and takes part elsewhere."""
    made, _first = made_account(make_project())
    made.set_password(PASSWORD)
    made.save()
    planted = Authenticator()
    add(made, planted)
    assert "Somebody else made your account" in alone(planted).content.decode()
    client = Client()
    client.force_login(made)
    new = {
        "old_password": PASSWORD,
        "new_password1": "quite another one",
        "new_password2": "quite another one",
    }
    assert client.post("/password/", new).status_code == 302
    assert alone(planted).status_code == 200
    assert "after the password only" in client.get(PAGE).content.decode()
    made.refresh_from_db()
    made.set_password(PASSWORD)
    made.save()
    own = Authenticator()
    add(made, own, "own")
    assert alone(own).status_code == 302


def test_the_site_has_one_name_for_passkeys_wherever_it_is_asked(ann, settings) -> None:
    settings.HYPAC_ADDRESS = "https://labels.example:8443/here"
    settings.ALLOWED_HOSTS = ["*"]
    key = Authenticator(origin="https://labels.example:8443")
    add(ann, key)
    asked = json.loads(options_in(Client().get(ALONE, headers={"Host": "inside"})))
    assert asked["rpId"] == "labels.example"
    assert alone(key).status_code == 302


def test_there_is_room_for_twenty(ann, key, monkeypatch) -> None:
    monkeypatch.setattr(change, "MOST_PASSKEYS", 1)
    client = Client()
    client.force_login(ann)
    answer = client.post(f"{PAGE}passkeys/new/", {"name": "x", "password": PASSWORD})
    assert "You have 1 passkeys" in answer.content.decode()
