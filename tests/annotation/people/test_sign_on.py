"""Logging in by an OpenID Connect provider: a real one, which the tests start."""

import json
from datetime import timedelta

import pytest
import requests
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from annotation.errors import InputError
from annotation.models import AuditEvent, Membership, User
from annotation.people import members, password_links, tokens
from annotation.people.log_in import SIGN_ON_BACKEND
from annotation.people.sign_on import provider as sign_on_provider, sign_on
from hypac_site.environment import ROLES
from testbed.factories import PASSWORD, add_member, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

ADA = {"preferred_username": "ada", "given_name": "Ada", "email": "ada@lab.example", "email_verified": True}
KNOWN = {"1": ADA}


def told(response) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def lets_in(name: str, browser: Client | None = None) -> bool:
    """By password."""
    answer = (browser or Client()).post("/login/", {"username": name, "password": PASSWORD})
    return answer.status_code == 302


def signed_on(sub: str = "1", **claims) -> User:
    return sign_on({"sub": sub, **claims})


def test_the_first_log_in_makes_an_account_and_later_ones_find_it(provider, client):
    answer = provider.log_in(client, "1", wanted="/account/")
    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    user = User.objects.get(username="ada")
    assert (user.first_name, user.email, user.is_staff) == ("Ada", "ada@lab.example", False)
    assert user.email_confirmed_at
    assert not user.has_usable_password()
    assert AuditEvent.objects.filter(action="account.signed_on_first", actor=user).count() == 1

    provider.knows("1", **ADA | {"preferred_username": "ada.l", "email": "ada@new.example"})
    provider.log_in(Client(), "1")
    user.refresh_from_db()
    assert User.objects.count() == 1, "the subject tells who it is, not the name"
    assert (user.username, user.email) == ("ada", "ada@new.example")


@pytest.mark.parametrize("told", ["anna@lab.example\u200b", "anna@lab.example ", "anna@lab\x00.example"])
def test_an_address_that_is_stored_otherwise_than_it_was_verified_counts_as_unconfirmed(provider, told):
    user = signed_on("9", preferred_username="mal", email=told, email_verified=True)
    assert (user.email, user.email_confirmed_at) == ("anna@lab.example", None)


def test_the_log_in_page_leads_there_and_nobody_is_sent_to_another_site(provider, client):
    page = client.get("/login/?next=/account/").content.decode()
    assert 'href="/sign-on/?next=/account/"' in page
    assert "Log in with the lab" in page
    assert provider.log_in(client, "1", wanted="//evil.example/")["Location"] == "/"
    assert provider.log_in(Client(), "1", wanted="/sign-on/")["Location"] == "/", "no circle"
    assert provider.log_in(Client(), "1", wanted="/logout/")["Location"] == "/", (
        "nothing can be looked at there"
    )


def test_without_a_provider_there_is_no_such_page(client):
    assert client.get("/sign-on/").status_code == client.get("/sign-on/done/").status_code == 404
    assert "sign-on" not in client.get("/login/").content.decode()


def test_a_way_back_holds_once_and_in_its_own_browser(provider, client):
    back = provider.way_back(client, "1")
    other = Client().get(back)
    assert other["Location"] == "/login/"
    assert "did not succeed" in told(other)
    assert client.get(back)["Location"] == "/"
    again = Client()
    again.cookies = client.cookies
    assert again.get(back)["Location"] == "/login/"
    assert User.objects.count() == 1


def test_a_log_in_that_was_cancelled_or_a_provider_that_is_away_is_told(provider, client, settings):
    assert "was cancelled" in told(client.get("/sign-on/done/?error=access_denied"))
    settings.HYPAC_OIDC_ISSUER = "http://localhost:9"
    answer = client.get("/sign-on/")
    assert answer["Location"] == "/login/"
    assert "does not answer" in told(answer)


class TestWhatGoesWrong:
    """A page for the person, and one line for the log, which holds no more than a code of what came in."""

    def line(self, caplog: pytest.LogCaptureFixture) -> str:
        [record] = [r for r in caplog.records if r.name.startswith(("annotation", "django"))]
        assert (record.levelname, record.exc_info) == ("WARNING", None)
        [line] = record.getMessage().splitlines()
        return line

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ("", "mismatching_state"),
            ("?state=x&code=s3cret", "mismatching_state"),
            ("?error=server_error&error_description=s3cret", "server_error"),
            ("?error=login%0Arequired", "loginrequired"),
        ],
    )
    def test_on_the_way_back(self, provider, client, caplog, query, code):
        answer = client.get(f"/sign-on/done/{query}")
        assert answer["Location"] == "/login/"
        assert "did not succeed" in told(answer)
        line = self.line(caplog)
        assert code in line
        assert "s3cret" not in line

    @pytest.mark.parametrize("codes", ["code=s3cret- invalid_grant", "cod=s3cret- missing_code"])
    def test_with_a_code_that_is_none(self, provider, client, caplog, codes):
        code, found = codes.split()
        answer = client.get(provider.way_back(client, "1").replace("code=", code))
        assert "did not succeed" in told(answer)
        line = self.line(caplog)
        assert found in line
        assert "s3cret" not in line

    def test_with_a_provider_that_is_away_on_the_way_back(self, provider, client, caplog, monkeypatch):
        back = provider.way_back(client, "1")
        monkeypatch.setitem(sign_on_provider().load_server_metadata(), "token_endpoint", "http://localhost:9")
        assert "does not answer" in told(client.get(back))
        assert "ConnectionError" in self.line(caplog)

    @pytest.mark.parametrize("path", ["/sign-on/", "/sign-on/done/"])
    @pytest.mark.parametrize("content", [b"[]", b"{}", b"<html>", None])
    def test_with_a_provider_of_which_nothing_can_be_used(
        self, client, settings, caplog, monkeypatch, path, content
    ):
        settings.HYPAC_OIDC_CLIENT_ID = "hypac"
        settings.HYPAC_OIDC_ISSUER = f"http://localhost:9/{content!r}"  # each is asked anew
        if content is not None:
            there = requests.Response()
            there.status_code, there._content = 200, content
            monkeypatch.setattr(requests.Session, "send", lambda *args, **options: there)
        answer = client.get(path)
        assert answer["Location"] == "/login/"
        assert told(answer)
        self.line(caplog)

    @pytest.mark.parametrize("userinfo", [[1], ["sub"], "x", None, {"sub": 7}], ids=repr)
    def test_with_claims_of_another_shape(self, provider, client, caplog, monkeypatch, userinfo):
        back = provider.way_back(client, "1")
        there = requests.Response()
        there.status_code, there._content = 200, json.dumps(userinfo).encode()
        monkeypatch.setattr(type(sign_on_provider()), "get", lambda *args, **options: there)
        assert "did not succeed" in told(client.get(back))
        self.line(caplog)

    @pytest.mark.parametrize("place", ["SIGNED_BY", "_take_over"])
    def test_a_fault_of_ours_keeps_its_trace(self, provider, client, caplog, monkeypatch, place):
        back = provider.way_back(client, "1")
        monkeypatch.setattr(f"annotation.people.sign_on.{place}", None)
        assert "did not succeed" in told(client.get(back))
        [record] = [r for r in caplog.records if r.name.startswith("annotation")]
        assert (record.levelname, record.exc_info[0], User.objects.count()) == ("ERROR", TypeError, 0)


@pytest.mark.parametrize("name", ["HYPAC_OIDC_ISSUER", "HYPAC_OIDC_CLIENT_ID"])
def test_a_token_of_another_issuer_or_for_another_client_lets_nobody_in(provider, client, settings, name):
    back = provider.way_back(client, "1")
    setattr(settings, name, f"{getattr(settings, name)}/")
    assert client.get(back)["Location"] == "/login/"
    assert not User.objects.exists()


def test_the_session_ends_after_its_hours_however_often_it_is_used(provider, client, settings):
    settings.HYPAC_OIDC_SESSION_HOURS = 2
    provider.log_in(client, "1")
    ends = client.session.get_expiry_date()
    assert timedelta(hours=1.9) < ends - timezone.now() <= timedelta(hours=2)
    client.get("/account/")
    session = client.session
    session["anything"] = 1
    session.save()
    assert client.session.get_expiry_date() == ends


def test_tokens_end_some_days_after_the_last_log_in_there(provider, client, settings):
    provider.log_in(client, "1")
    user = User.objects.get(username="ada")
    _row, secret = tokens.make_token(user=user, name="nightly")
    headers = {"Authorization": f"Token {secret}"}
    assert Client().get("/api/v1/projects/", headers=headers).status_code == 200
    User.objects.update(signed_on_at=timezone.now() - timedelta(days=settings.HYPAC_OIDC_TOKEN_DAYS, hours=1))
    assert Client().get("/api/v1/projects/", headers=headers).status_code == 401
    provider.log_in(Client(), "1")
    assert Client().get("/api/v1/projects/", headers=headers).status_code == 200


def test_somebody_switched_off_here_stays_out(provider, client):
    provider.log_in(client, "1")
    User.objects.update(is_active=False)
    other = Client()
    assert "switched off" in told(provider.log_in(other, "1"))
    assert client.get("/account/").status_code == 302


def test_after_logging_out_the_page_shows_where_the_log_in_there_ends(provider, client):
    provider.log_in(client, "1")
    client.post("/logout/")
    page = client.get("/login/").content.decode()
    assert f"{provider.issuer}/oauth2/end_session?id_token_hint=" in page
    assert "Log out of the lab, too" in page
    assert "end_session" not in client.get("/login/").content.decode(), "it is shown once"


class TestAccountsThatWereThere:
    @pytest.fixture
    def anna(self) -> User:
        user = make_user("anna", password=PASSWORD)
        user.email, user.email_confirmed_at = "anna@lab.example", timezone.now()
        user.save()
        return user

    def test_one_address_confirmed_on_both_sides_links_it(self, provider, anna, client):
        provider.knows("7", preferred_username="a.smith", email="Anna@lab.example", email_verified=True)
        _row, secret = tokens.make_token(user=anna, name="old")
        provider.log_in(client, "7")
        anna.refresh_from_db()
        assert anna.sign_on == f"{provider.issuer} 7"
        assert User.objects.count() == 1
        assert not lets_in("anna"), "the password is gone"
        old = Client().get("/api/v1/projects/", headers={"Authorization": f"Token {secret}"})
        assert old.status_code == 401

    @pytest.mark.parametrize(
        ("claims", "stored"),
        [
            ({"email_verified": False}, {}),
            ({"email_verified": "true"}, {}),
            ({}, {}),
            ({"email_verified": True}, {"email_confirmed_at": None}),
            ({"email_verified": True}, {"is_staff": True}),
            ({"email_verified": True}, {"is_superuser": True}),
            ({"email_verified": True}, {"is_active": False}),
        ],
    )
    def test_else_it_is_another_account(self, provider, anna, claims, stored):
        User.objects.filter(pk=anna.pk).update(**stored)
        made = signed_on("7", preferred_username="anna", email="anna@lab.example", **claims)
        assert made.pk != anna.pk
        assert made.username == "anna-2"
        assert lets_in("anna") is stored.get("is_active", True)

    def test_letters_that_look_like_those_of_ascii_are_of_another_mailbox(self, provider, anna):
        User.objects.filter(pk=anna.pk).update(email="kim@lab.example")
        for sub, local in (("7", "k\u0131m"), ("8", "\u212aim")):
            # PostgreSQL takes the first one as equal, whatever large letters are.
            made = signed_on(sub, preferred_username="x", email=f"{local}@lab.example", email_verified=True)
            assert made.pk != anna.pk
        linked = signed_on("9", email="KIM@lab.example", email_verified=True)
        assert linked.pk == anna.pk
        again = signed_on("9", email="\u212aim@lab.example", email_verified=False)
        assert again.email_confirmed_at is None, "nobody has seen that address confirmed"

    def test_two_accounts_of_one_address_stay_as_they_are(self, provider, anna):
        other = make_user("bert")
        User.objects.filter(pk=other.pk).update(email=anna.email, email_confirmed_at=timezone.now())
        made = signed_on("7", preferred_username="x", email=anna.email, email_verified=True)
        assert made.pk not in (anna.pk, other.pk)


class TestNames:
    @pytest.mark.parametrize(
        ("claims", "name"),
        [
            ({"preferred_username": "grace@lab.example"}, "grace@lab.example"),
            ({"preferred_username": "Grace Hopper"}, "Grace.Hopper"),
            ({"preferred_username": "<b>x</b>"}, "bxb"),
            ({"preferred_username": "раул.bob"}, "bob"),
            ({"preferred_username": "💥"}, "person"),
            ({"email": "g@lab.example"}, "g@lab.example"),
            ({"preferred_username": {"a": 1}, "name": "Grace"}, "Grace"),
            ({}, "person"),
            ({"preferred_username": "x" * 400}, "x" * 140),
        ],
    )
    def test_are_made_of_what_the_provider_says(self, provider, claims, name):
        made = signed_on("9", **claims)
        assert made.username.strip(".") == name
        User.objects.get(pk=made.pk).full_clean(exclude=["password"])

    def test_that_look_like_another_get_a_number(self, provider):
        make_user("annl")
        assert signed_on("9", preferred_username="ann1").username == "ann1-2"


class TestGroups:
    def test_may_give_every_role_that_there_is(self) -> None:
        assert list(ROLES) == Membership.Role.values

    @pytest.fixture
    def project(self, settings):
        made = make_project(name="Reviews")
        settings.HYPAC_OIDC_GROUPS = {
            "labellers": {made.slug: "annotator"},
            "leads": {made.slug: "manager"},
            "elsewhere": {"no-such-project": "owner"},
        }
        return made

    def role(self, project) -> str | None:
        member = Membership.objects.filter(project=project, user__sign_on__isnull=False).first()
        return None if member is None else (member.role if member.is_active else "off")

    def test_give_roles_and_take_them(self, provider, project, client):
        provider.knows("1", **ADA, groups=["labellers", "elsewhere", "unknown"])
        provider.log_in(client, "1")
        assert self.role(project) == "annotator"
        signed_on(groups=["labellers", "leads"])
        assert self.role(project) == "manager"
        signed_on(groups=[])
        assert self.role(project) == "off"
        signed_on(groups=["labellers"])
        assert self.role(project) == "annotator"
        changes = AuditEvent.objects.filter(project=project, actor=None)
        assert changes.filter(action__startswith="member.").count() == 5

    def test_that_the_provider_does_not_tell_change_nothing(self, provider, project):
        user = signed_on(groups=["leads"])
        signed_on()
        signed_on(groups={"leads": 1})
        assert self.role(project) == "manager"
        assert user.memberships.count() == 1

    def test_leave_other_projects_and_the_last_owner_alone(self, provider, project):
        user = signed_on(groups=["labellers"])
        other = make_project(name="Other")
        add_member(other, "viewer", user=user)
        Membership.objects.filter(project=project).exclude(user=user).delete()
        Membership.objects.filter(project=project, user=user).update(role="owner")
        signed_on(groups=["labellers"])
        assert self.role(project) == "owner", "somebody has to stay the owner"
        assert user.memberships.get(project=other).role == "viewer"


class TestPasswords:
    @pytest.mark.parametrize(
        ("who", "staff", "allowed"),
        [
            ("everybody", False, True),
            ("staff", False, False),
            ("staff", True, True),
            ("nobody", True, False),
        ],
    )
    def test_are_for_whom_the_settings_say(self, provider, settings, who, staff, allowed):
        user = make_user("root", password=PASSWORD, is_staff=staff)
        browser = Client()
        assert lets_in("root", browser)
        settings.HYPAC_LOCAL_LOGIN = who
        assert lets_in("root") is allowed
        stays = browser.get("/account/").status_code == 200
        assert stays is allowed, "a session ends with the right to log in so"
        page = Client().get("/login/").content.decode()
        assert ('name="password"' in page) is (who != "nobody")
        assert user.sign_on is None

    def test_are_none_for_whom_the_provider_vouches(self, provider, client):
        provider.log_in(client, "1")
        user = User.objects.get(username="ada")
        assert "by the lab, without a password here" in client.get("/account/").content.decode()
        assert client.get("/password/")["Location"] == "/account/"
        root = make_user("root", is_superuser=True)
        assert "without a password here" in password_links.why_no_link(actor=root, user=user)
        user.set_password(PASSWORD)
        user.save()
        assert not lets_in("ada")

    def test_of_new_accounts_are_refused_where_people_come_by_the_provider(self, provider, settings):
        settings.HYPAC_LOCAL_LOGIN = "staff"
        project = make_project()
        with pytest.raises(InputError, match="at the first log-in"):
            members.create_account(
                project=project, actor=project.created_by, username="new", role="annotator"
            )
        assert not User.objects.filter(username="new").exists()
        owner = Client()
        owner.force_login(project.created_by, backend=SIGN_ON_BACKEND)
        address = f"/projects/{project.slug}/members/"
        page = owner.get(address).content.decode()
        assert "Invite somebody" in page
        assert "Create an account" not in page
        settings.HYPAC_LOCAL_LOGIN = "everybody"
        assert "Create an account" in owner.get(address).content.decode()
