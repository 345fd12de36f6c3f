"""Tokens: whom they let in, how far, and what ends them."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation.errors import InputError
from annotation.models import ApiToken, AuditEvent, Membership, Project, User
from annotation.people.invitations import accept
from annotation.people.members import remove_member
from annotation.people.tokens import forget_ended, make_token, revoke_token
from testbed.factories import PASSWORD, add_member, make_project, make_user

PROJECTS = "/api/v1/projects/"
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def status_with(secret: str, path: str = PROJECTS, method: str = "get", **extra) -> int:
    if method == "post":
        extra = {"data": {}, "content_type": "application/json", **extra}
    return getattr(Client(), method)(path, headers={"Authorization": f"Token {secret}"}, **extra).status_code


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def owner(project) -> User:
    return project.created_by


@pytest.fixture
def secret(owner) -> str:
    return make_token(user=owner, name="nightly")[1]


class TestWhatOpens:
    @pytest.mark.parametrize("scheme", ["Token", "token", "Bearer", "BEARER"])
    def test_a_token_stands_for_its_person(self, scheme: str, project, secret) -> None:
        answer = Client().get(PROJECTS, headers={"Authorization": f"{scheme} {secret}"})
        assert [row["slug"] for row in answer.json()["results"]] == [project.slug]

    def test_who_asks_is_told_by_what(self, owner, project, secret) -> None:
        told = Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"}).json()
        assert (told["username"], told["makes_projects"]) == (owner.username, True)
        assert (told["token"]["name"], told["token"]["project"]) == ("nightly", None)
        assert secret not in str(told)
        less = make_token(user=owner, name="less", role="viewer", project=project)[1]
        told = Client().get("/api/v1/me/", headers={"Authorization": f"Token {less}"}).json()
        assert (told["makes_projects"], told["token"]["role"]) == (False, "viewer")
        assert told["token"]["project"] == project.slug
        client = Client()
        client.force_login(owner)
        assert client.get("/api/v1/me/").json()["token"] is None
        assert Client().get("/api/v1/me/").status_code == 401

    def test_what_is_stored_opens_nothing(self, secret) -> None:
        token = ApiToken.objects.get()
        stored = [str(value) for value in ApiToken.objects.values_list().get()]
        assert secret not in stored
        assert status_with(token.digest) == status_with(token.token_key) == 401

    @pytest.mark.parametrize("scheme", ["Token", "Bearer", "Basic", "Tokens"])
    @pytest.mark.parametrize("rest", ["", " x", " a b", " é", " \x00"])
    def test_anything_else_opens_nothing(self, scheme: str, rest: str, project) -> None:
        answer = Client().get(PROJECTS, headers={"Authorization": scheme + rest})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Token realm="HyPAC", Bearer realm="HyPAC"'
        assert answer.json()["status"] == 401

    def test_a_token_in_the_address_opens_nothing(self, secret) -> None:
        for name in ("token", "Authorization", "access_token"):
            assert Client().get(PROJECTS, {name: secret}).status_code == 401

    def test_it_needs_no_mark_of_a_form_as_a_session_does(self, owner, secret) -> None:
        client = Client(enforce_csrf_checks=True)
        body = {"name": "Reviews", "choices": [{"name": "good"}, {"name": "bad"}]}
        sent = {"data": body, "content_type": "application/json"}
        client.force_login(owner)
        assert client.post(PROJECTS, **sent).status_code == 403
        client.logout()
        assert client.post(PROJECTS, headers={"Authorization": f"Token {secret}"}, **sent).status_code == 201

    def test_a_wrong_token_beside_a_session_is_not_passed_over(self, owner) -> None:
        client = Client()
        client.force_login(owner)
        assert client.get(PROJECTS, headers={"Authorization": "Token wrong"}).status_code == 401

    def test_pages_know_no_tokens(self, secret) -> None:
        assert Client().get("/", headers={"Authorization": f"Token {secret}"}).status_code == 302


class TestWhatEnds:
    def test_its_last_day(self, secret) -> None:
        ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
        assert status_with(secret) == 401

    def test_being_revoked(self, owner, secret) -> None:
        revoke_token(token=ApiToken.objects.get(), actor=owner)
        assert status_with(secret) == 401
        assert list(AuditEvent.objects.order_by("id").values_list("action", flat=True))[-2:] == [
            "token.made",
            "token.revoked",
        ]

    def test_an_account_that_is_switched_off(self, owner, secret) -> None:
        User.objects.filter(pk=owner.pk).update(is_active=False)
        assert status_with(secret) == 401

    def test_a_new_password_by_whatever_way(self, owner, secret) -> None:
        owner.set_password("another-one-4711")
        owner.save()
        assert status_with(secret) == 401

    def test_no_password_that_is_only_hashed_better(self, owner, secret, settings) -> None:
        """So Django does when somebody logs in after an upgrade."""
        before = owner.password

        class Better(MD5PasswordHasher):
            def must_update(self, encoded: str) -> bool:
                return True

        hashers = pytest.MonkeyPatch()
        hashers.setattr("django.contrib.auth.hashers.get_hashers", lambda: [Better()])
        hashers.setattr("django.contrib.auth.hashers.get_hasher", lambda algorithm="default": Better())
        try:
            assert owner.check_password(PASSWORD)
        finally:
            hashers.undo()
        owner.refresh_from_db()
        assert owner.password != before
        assert status_with(secret) == 200

    def test_leaving_the_only_project_that_it_opens(self, owner, project) -> None:
        member = add_member(project, "manager")
        make_token(user=member, name="here", project=project)
        make_token(user=member, name="everywhere")
        remove_member(project=project, actor=owner, user=member)
        assert list(ApiToken.objects.values_list("name", flat=True)) == ["everywhere"]

    def test_what_ended_long_ago_is_forgotten(self, secret) -> None:
        ApiToken.objects.update(expiry=timezone.now() - timedelta(days=29))
        forget_ended()
        assert ApiToken.objects.exists()
        ApiToken.objects.update(expiry=timezone.now() - timedelta(days=31))
        forget_ended()
        assert not ApiToken.objects.exists()


class TestLess:
    def test_a_role_takes_away_and_adds_nothing(self, project, owner) -> None:
        jobs = f"{PROJECTS}{project.slug}/jobs/"
        claim = f"{PROJECTS}{project.slug}/queue/claim/"
        annotator = add_member(project, "annotator")
        capped = make_token(user=owner, name="x", role="annotator")[1]
        raised = make_token(user=annotator, name="x", role="owner")[1]
        assert status_with(capped, jobs) == status_with(raised, jobs) == 403
        assert status_with(capped, claim, "post") == status_with(raised, claim, "post") == 200
        viewer = make_token(user=owner, name="x", role="viewer")[1]
        assert status_with(viewer, jobs) == 200
        assert status_with(viewer, claim, "post") == 403

    def test_one_project_is_the_only_one(self, project, owner) -> None:
        other = make_project(owner)
        bound = make_token(user=owner, name="x", project=project)[1]
        assert status_with(bound, f"{PROJECTS}{project.slug}/") == 200
        assert status_with(bound, f"{PROJECTS}{other.slug}/") == 404
        listed = Client().get(PROJECTS, headers={"Authorization": f"Token {bound}"}).json()["results"]
        assert [row["slug"] for row in listed] == [project.slug]

    @pytest.mark.parametrize("less", [{"role": "owner"}, {"project": True}])
    def test_it_makes_no_projects_then(self, less: dict, project, owner) -> None:
        limits = {"project": project} if "project" in less else less
        token = make_token(user=owner, name="x", **limits)[1]
        assert status_with(token, PROJECTS, "post", data={"name": "x"}) == 403


class TestMaking:
    @pytest.fixture
    def client(self, owner) -> Client:
        client = Client()
        client.force_login(owner)
        return client

    def test_by_a_session_alone(self, client, owner, secret) -> None:
        path = "/api/v1/tokens/"
        answer = client.post(path, {"name": "ci", "days": 7}, content_type="application/json")
        assert answer.status_code == 201
        assert status_with(answer.json()["token"]) == 200
        for method in ("get", "post"):
            assert status_with(secret, path, method) == 403
        listed = client.get(path).json()["results"]
        assert [row["name"] for row in listed] == ["ci", "nightly"]
        assert "token" not in listed[0]
        number = listed[0]["id"]
        assert status_with(secret, f"{path}{number}/", "delete") == 403
        assert client.delete(f"{path}{number}/").status_code == 204
        assert status_with(answer.json()["token"]) == 401

    def test_those_of_others_are_not_there(self, client, project) -> None:
        token, _ = make_token(user=add_member(project), name="theirs")
        assert client.delete(f"/api/v1/tokens/{token.pk}/").status_code == 404
        assert client.get("/api/v1/tokens/").json()["results"] == []

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [({"name": " "}, "name"), ({"days": 0}, "days"), ({"days": 366}, "days"), ({"role": "king"}, "role")],
    )
    def test_what_cannot_be(self, wrong: dict, field: str, owner) -> None:
        with pytest.raises(InputError) as caught:
            make_token(user=owner, **{"name": "x", **wrong})
        assert caught.value.where == field

    def test_of_no_project_of_others(self, owner) -> None:
        with pytest.raises(InputError):
            make_token(user=owner, name="x", project=make_project())

    def test_use_is_noted_but_not_each_time(self, secret) -> None:
        assert ApiToken.objects.get().last_used_at is None
        status_with(secret)
        first = ApiToken.objects.get().last_used_at
        status_with(secret)
        assert ApiToken.objects.get().last_used_at == first is not None

    def test_on_the_server(self, project, owner, capsys) -> None:
        call_command("token", owner.username, "--days", "3", "--project", project.slug, "--role", "viewer")
        secret = capsys.readouterr().out.strip()
        assert status_with(secret, f"{PROJECTS}{project.slug}/") == 200
        for wrong in (["nobody"], [owner.username, "--project", "none"], [owner.username, "--days", "0"]):
            with pytest.raises(CommandError):
                call_command("token", *wrong)


class TestLimits:
    def test_wrong_tokens_are_counted_and_right_ones_pass(self, secret, settings) -> None:
        settings.HYPAC_API_RATES = {**settings.HYPAC_API_RATES, "wrong_tokens": "3/min"}
        assert [status_with(f"hypac_{n}") for n in range(4)] == [401, 401, 401, 429]
        assert status_with(secret) == 200

    def test_requests_of_a_person_are_counted(self, owner, secret, settings) -> None:
        settings.HYPAC_API_RATES = {**settings.HYPAC_API_RATES, "user": "2/min"}
        assert [status_with(secret) for _ in range(2)] == [200, 200]
        answer = Client().get(PROJECTS, headers={"Authorization": f"Token {secret}"})
        assert answer.status_code == answer.json()["status"] == 429
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert 0 < int(answer.headers["Retry-After"]) <= 60

    def test_labelling_has_its_own_limit(self, project, secret, settings) -> None:
        settings.HYPAC_API_RATES = {**settings.HYPAC_API_RATES, "user": "1/min", "queue": "3/min"}
        claim = f"{PROJECTS}{project.slug}/queue/claim/"
        assert [status_with(secret, claim, "post") for _ in range(4)] == [200, 200, 200, 429]
        assert status_with(secret) == 200

    def test_unknown_people_have_one_by_address(self, db, settings) -> None:
        settings.HYPAC_API_RATES = {**settings.HYPAC_API_RATES, "anonymous": "2/min"}
        client = Client()
        assert [client.get(PROJECTS).status_code for _ in range(3)] == [401, 401, 429]
        elsewhere = client.get(PROJECTS, REMOTE_ADDR="192.0.2.7")
        assert elsewhere.status_code == 401

    def test_none_where_it_is_set_empty(self, secret, settings) -> None:
        settings.HYPAC_API_RATES = dict.fromkeys(settings.HYPAC_API_RATES, "")
        assert {status_with(secret) for _ in range(5)} == {200}
        answer = Client().get(PROJECTS, headers={"Authorization": f"Token {secret}"})
        assert "RateLimit" not in answer.headers

    def test_each_answer_says_what_is_left(self, secret, settings) -> None:
        settings.HYPAC_API_RATES = {**settings.HYPAC_API_RATES, "user": "2/min", "anonymous": "5/min"}
        asked = [Client().get(PROJECTS, headers={"Authorization": f"Token {secret}"}) for _ in range(3)]
        assert {answer.headers["RateLimit-Policy"] for answer in asked} == {'"user";q=2;w=60'}
        left = [re.fullmatch(r'"user";r=(\d+);t=(\d+)', answer.headers["RateLimit"]) for answer in asked]
        assert [int(found[1]) for found in left if found] == [1, 0, 0]
        assert all(0 < int(found[2]) <= 60 for found in left if found)
        stranger = Client().get(PROJECTS)
        assert stranger.status_code == 401
        assert stranger.headers["RateLimit"].startswith('"anonymous";r=4;')


class TestPages:
    def test_one_is_made_shown_once_and_revoked(self, project, owner) -> None:
        client = Client()
        client.force_login(owner)
        assert "/account/tokens/" in client.get("/account/").content.decode()
        fields = {"name": "nightly", "days": "7", "role": "viewer", "project": str(project.pk)}
        made = client.post("/account/tokens/", fields)
        secret = made.content.decode().partition('id="link" class="mono" value="')[2].partition('"')[0]
        assert made.headers["Cache-Control"] == "no-store, private"
        assert status_with(secret, f"{PROJECTS}{project.slug}/") == 200
        page = client.get("/account/tokens/").content.decode()
        assert "nightly" in page
        assert secret not in page
        number = ApiToken.objects.get().pk
        assert client.post(f"/account/tokens/{number}/revoke/").status_code == 302
        assert status_with(secret, f"{PROJECTS}{project.slug}/") == 401

    def test_of_others_there_are_none(self, project, owner) -> None:
        token, _ = make_token(user=add_member(project), name="theirs")
        client = Client()
        client.force_login(owner)
        assert "theirs" not in client.get("/account/tokens/").content.decode()
        assert client.post(f"/account/tokens/{token.pk}/revoke/").status_code == 404

    def test_what_is_wrong_is_told_beside_the_form(self, owner) -> None:
        client = Client()
        client.force_login(owner)
        page = client.post("/account/tokens/", {"name": "x", "days": "9999"}).content.decode()
        assert 'role="alert"' in page
        assert not ApiToken.objects.exists()

    def test_the_page_of_the_api_has_no_script_in_it(self, db) -> None:
        page = Client().get("/api/v1/docs/").content.decode()
        assert "swagger-ui-bundle" in page
        assert "<script>" not in page
        assert "http://" not in page
        assert "https://" not in page


class TestWhatOutlastsIt:
    """Nobody comes in by a token who could do all that it can, once it has ended."""

    @pytest.mark.parametrize("role", ["owner", "manager"])
    def test_it_makes_nobody_owner_or_manager(self, role: str, project, owner, secret) -> None:
        there, away = add_member(project, "annotator"), add_member(project, role)
        come = make_user("ben")
        Membership.objects.filter(user=away).update(is_active=False)
        client = Client()
        tries = [
            ("post", "invitations/", {"role": role}),
            ("post", "members/", {"role": role, "username": come.username}),
            ("patch", f"members/{there.pk}/", {"role": role}),
            ("patch", f"members/{away.pk}/", {"active": True}),
        ]

        def answers(**extra) -> list[int]:
            base = f"{PROJECTS}{project.slug}/"
            sent = {"content_type": "application/json", **extra}
            return [getattr(client, way)(base + path, body, **sent).status_code for way, path, body in tries]

        assert answers(headers={"Authorization": f"Token {secret}"}) == [403] * 4
        leaders = project.memberships.filter(role__in=("owner", "manager"), is_active=True)
        assert [row.user for row in leaders] == [owner]
        assert not project.invitations.exists()
        client.force_login(owner)
        assert answers() == [201, 201, 200, 200]

    @pytest.mark.parametrize("role", ["owner", "manager"])
    def test_it_takes_that_from_nobody(self, role: str, project, owner, secret) -> None:
        there = add_member(project, role)
        path, client = f"{PROJECTS}{project.slug}/members/{there.pk}/", Client()

        def answers(**extra) -> list[int]:
            sent = {"content_type": "application/json", **extra}
            tries = [
                client.patch(path, {"role": "viewer"}, **sent),
                client.patch(path, {"active": False}, **sent),
                client.delete(path, **extra),
            ]
            return [answer.status_code for answer in tries]

        assert answers(headers={"Authorization": f"Token {secret}"}) == [403] * 3
        kept = project.memberships.get(user=there)
        assert (kept.role, kept.is_active) == (role, True)
        client.force_login(owner)
        assert answers() == [200, 200, 204]

    def test_others_come_in_by_it(self, project, secret) -> None:
        base, sent = f"{PROJECTS}{project.slug}/", {"headers": {"Authorization": f"Token {secret}"}}
        client, json = Client(), "application/json"
        manager, come = add_member(project, "manager"), make_user("ben")
        body = {"role": "reviewer", "username": come.username}
        assert client.post(f"{base}invitations/", {"role": "annotator"}, json, **sent).status_code == 201
        assert client.post(f"{base}members/", body, json, **sent).status_code == 201
        accept(invitation=project.invitations.get(user=come), user=come)
        for change in ({"role": "viewer"}, {"active": False}, {"active": True}, {"max_labels": 5}):
            member = f"{base}members/{come.pk}/"
            assert client.patch(member, change, content_type=json, **sent).status_code == 200
        limited = client.patch(f"{base}members/{manager.pk}/", {"max_labels": 5}, content_type=json, **sent)
        assert limited.status_code == 200
