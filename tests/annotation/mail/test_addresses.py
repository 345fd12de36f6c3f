"""Letters go to addresses that their holders confirmed; by them a lost password is set anew."""

import re
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from annotation.mail.sending import send_due
from annotation.models import Mail, User
from annotation.people.members import create_account
from testbed.factories import make_project, make_user
from testbed.mail_server import MailServer, words_of

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough secret"


@pytest.fixture
def ann() -> User:
    user = make_user("ann")
    user.set_password(PASSWORD)
    user.save()
    return user


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def path_in(server: MailServer) -> str:
    """Where the button of the last letter leads."""
    found = re.search(r"https://labels\.example(/\S+)", words_of(server.taken[-1]))
    assert found
    return urlsplit(found[1]).path


def confirmed(user: User, address: str) -> User:
    User.objects.filter(pk=user.pk).update(email=address, email_confirmed_at=timezone.now())
    return User.objects.get(pk=user.pk)


def about(user: User, **fields: str) -> dict[str, str]:
    return {"first_name": "", "last_name": "", "email": user.email, "language": "", **fields}


def test_an_address_is_confirmed_by_a_letter_and_the_password(server, ann) -> None:
    client = logged_in(ann)
    answer = client.post("/account/", about(ann, email="ann@example.org", mail_work="on"), follow=True)
    assert "An e-mail is on its way" in answer.content.decode()
    assert "not confirmed" in answer.content.decode()
    assert send_due() == 1
    assert server.taken[0]["To"] == "ann@example.org"
    path = path_in(server)
    assert client.get(path).status_code == 200
    ann.refresh_from_db()
    assert ann.email_confirmed_at is None
    assert "That is not your password" in client.post(path, {"password": "guess"}).content.decode()
    answer = client.post(path, {"password": PASSWORD}, follow=True)
    assert "The address is confirmed" in answer.content.decode()
    ann.refresh_from_db()
    assert ann.email_confirmed_at is not None
    assert (ann.mail_work, ann.mail_notices) == (True, False)
    client.post("/account/", about(ann, email="other@example.org"))
    ann.refresh_from_db()
    assert ann.email_confirmed_at is None
    assert (
        "for another account or address"
        in client.post(path, {"password": PASSWORD}, follow=True).content.decode()
    )


def test_the_link_is_nobody_elses(server, ann) -> None:
    bob = make_user("bob")
    bob.set_password(PASSWORD)
    bob.email = "ann@example.org"
    bob.save()
    logged_in(ann).post("/account/", about(ann, email="ann@example.org"))
    send_due()
    logged_in(bob).post(path_in(server), {"password": PASSWORD})
    bob.refresh_from_db()
    assert bob.email_confirmed_at is None
    assert Client().get(path_in(server)).url.startswith("/login/")


def test_a_lost_password_is_set_by_a_letter(server, ann) -> None:
    confirmed(ann, "ann@example.org")
    said = {
        Client().post("/forgotten/", {"named": name}).content
        for name in ("ann", "nobody", "Ann@example.org", "nobody@example.org")
    }
    assert len({re.sub(rb'name="csrf\S+ value="\S+"|nonce="\S+"', b"", page) for page in said}) == 1
    assert send_due() == 1
    assert send_due() == 0
    client = Client()
    answer = client.get(path_in(server), follow=True)
    form = {"new_password1": "quite another secret", "new_password2": "quite another secret"}
    answer = client.post(answer.request["PATH_INFO"], form, follow=True)
    assert "Your password is set" in answer.content.decode()
    ann.refresh_from_db()
    assert ann.check_password("quite another secret")
    assert "holds no longer" in Client().get(path_in(server), follow=True).content.decode()


def test_no_letter_goes_to_an_address_that_nobody_confirmed(server, ann) -> None:
    User.objects.filter(pk=ann.pk).update(email="ann@example.org")
    Client().post("/forgotten/", {"named": "ann"})
    User.objects.filter(pk=confirmed(make_user("gone"), "gone@example.org").pk).update(is_active=False)
    Client().post("/forgotten/", {"named": "gone"})
    assert not Mail.objects.exists()


def test_whoever_made_an_account_cannot_keep_it_by_an_address_of_theirs(server) -> None:
    project = make_project()
    fields = {"username": "dora", "role": "annotator", "email": "owner@example.org", "password": PASSWORD}
    create_account(project=project, actor=project.created_by, **fields)
    dora = User.objects.get(username="dora")
    client = logged_in(dora)
    client.post("/account/mail/")
    send_due()
    answer = client.post(path_in(server), {"password": PASSWORD}, follow=True)
    assert "Choose a new one first" in answer.content.decode()
    # They choose it in her place, confirm their address, and give her the account.
    User.objects.filter(pk=dora.pk).update(password_chosen_at=timezone.now())
    client.post(path_in(server), {"password": PASSWORD})
    dora.refresh_from_db()
    assert dora.email_confirmed_at is not None
    # She chooses another: from then on nothing leads from that address to her account.
    form = {
        "old_password": PASSWORD,
        "new_password1": "hers alone for ever",
        "new_password2": "hers alone for ever",
    }
    client.post("/password/", form)
    dora.refresh_from_db()
    assert dora.check_password("hers alone for ever")
    assert dora.email_confirmed_at is None
    Client().post("/forgotten/", {"named": "dora"})
    assert send_due() == 0


def test_where_no_mail_is_sent_nothing_of_it_is_there(ann) -> None:
    client = logged_in(ann)
    assert Client().get("/forgotten/").status_code == 404
    assert "Forgot" not in Client().get("/login/").content.decode()
    assert "E-mails" not in client.get("/account/").content.decode()
    client.post("/account/", about(ann, email="ann@example.org"))
    assert client.post("/account/mail/").status_code == 404
    ann.refresh_from_db()
    assert (ann.email, ann.mail_work, ann.mail_notices) == ("ann@example.org", True, True)
    assert not Mail.objects.exists()


def test_letters_of_one_account_are_few_however_often_one_asks(server, ann) -> None:
    confirmed(ann, "ann@example.org")
    for _ in range(5):
        Client().post("/forgotten/", {"named": "ann"})
    assert Mail.objects.count() <= 2  # where ten minutes end in between
