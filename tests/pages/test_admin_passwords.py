"""Passwords in the administration: counted as on all other pages, and whose they are is remembered."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import AttemptBucket, AuditEvent, User
from testbed.factories import make_user

pytestmark = pytest.mark.django_db
NEW = "a quite new pass-phrase"


@pytest.fixture
def root() -> User:
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def admin(client_of, root) -> Client:
    return client_of(root)


@pytest.fixture
def few(settings) -> None:
    settings.HYPAC_LOGIN_RATES = {"address": "3/hour", "all": "100/hour"}


def set_password(admin: Client, user: User, password: str = NEW):
    form = {"usable_password": "true", "password1": password, "password2": password}
    return admin.post(reverse("admin:auth_user_password_change", args=[user.pk]), form)


def test_ones_own_password_is_changed_on_its_page_alone(admin, root) -> None:
    """Thirty wrong old passwords were all looked at, by whoever had a session."""
    form = {"old_password": "wrong", "new_password1": NEW, "new_password2": NEW}
    for answer in (admin.get("/admin/password_change/"), admin.post("/admin/password_change/", form)):
        assert (answer.status_code, answer.url) == (302, reverse("password"))
    assert not AttemptBucket.objects.exists()
    assert reverse("admin:password_change") == "/admin/password_change/", "where the administration leads"


def test_passwords_that_administrators_set_are_counted(admin, few) -> None:
    ann = make_user("ann")
    found = [set_password(admin, ann, "no").status_code for _ in range(5)]
    assert found == [200] * 3 + [429] * 2


def test_accounts_that_administrators_make_are_counted(admin, few) -> None:
    path = reverse("admin:annotation_user_add")
    found = [admin.post(path, {"username": ""}).status_code for _ in range(5)]
    assert found == [200] * 3 + [429] * 2


def test_a_password_set_for_somebody_is_not_their_own_and_they_are_told(admin, root) -> None:
    ann = make_user("ann")
    assert set_password(admin, ann).status_code == 302
    ann.refresh_from_db()
    assert (ann.password_chosen_at, ann.reset_link_by) == (None, root)
    assert AuditEvent.objects.get(action="account.password_set").actor == root
    client = Client()
    client.post("/login/", {"username": "ann", "password": NEW})
    for path in ("/", "/account/"):
        page = client.get(path).content.decode()
        assert "root set your password" in page
    own = "quite-another-4711"
    form = {"old_password": NEW, "new_password1": own, "new_password2": own}
    assert client.post("/password/", form).status_code == 302
    assert "set your password" not in client.get("/account/").content.decode()


def test_one_that_fails_changes_nothing(admin) -> None:
    ann = make_user("ann")
    assert set_password(admin, ann, "no").status_code == 200
    ann.refresh_from_db()
    assert ann.password_chosen_at is not None
    assert ann.reset_link_at is None


def test_an_administrators_own_stays_theirs(admin, root) -> None:
    assert set_password(admin, root).status_code == 302
    root.refresh_from_db()
    assert root.password_chosen_at is not None
    assert admin.get("/admin/").status_code == 200, "and the session goes on"
