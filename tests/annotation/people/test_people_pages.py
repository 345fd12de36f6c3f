"""Invitations, accounts and members in the browser's requests."""

import logging
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.labelling import queue
from annotation.models import AuditEvent, Comment, Invitation, Label, Project, User
from annotation.people.attempt_limits import LinkThrottle
from annotation.people.invitations import create_invitation
from annotation.people.queries import labels_per_day, latest_labels, people
from annotation.ports import routing_port
from hypac_site.logs import HideTokens
from testbed.factories import PASSWORD, add_member, made_account, make_items, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
GOOD = "a-long-enough-4711"
ACCOUNT = {"username": "carl", "password": GOOD, "again": GOOD}


@pytest.fixture(autouse=True)
def no_throttle():
    cache.clear()
    yield
    cache.clear()


def text(answer) -> str:
    return answer.content.decode()


def invite(project: Project, **fields) -> str:
    fields = {"role": "annotator", "max_uses": 1, "days": 7, **fields}
    return create_invitation(project=project, actor=project.created_by, **fields)[1]


class TestMakingOne:
    def test_the_link_is_shown_once(self, owner, project) -> None:
        url = reverse("invitation_new", args=[project.slug])
        fields = {
            "invite-role": "reviewer",
            "invite-max_uses": "2",
            "invite-days": "3",
            "invite-note": "<b>Ben</b>",
        }
        answer = owner.post(url, fields)
        link = re.search(r'value="(http://testserver/join/([\w-]+)/)"', text(answer))
        assert link
        assert "no-store" in answer.headers["Cache-Control"]
        page = text(owner.get(reverse("members", args=[project.slug])))
        assert link[2] not in page
        assert "0 of 2 joined" in page
        assert "&lt;b&gt;Ben" in page
        assert "You are invited" in text(Client().get(link[1]))

    def test_what_is_wrong_stands_beside_the_field(self, owner, project) -> None:
        url = reverse("invitation_new", args=[project.slug])
        page = text(owner.post(url, {"invite-role": "annotator", "invite-max_uses": "0", "invite-days": "7"}))
        assert 'id="id_invite-max_uses_error"' in page
        assert not Invitation.objects.exists()

    def test_it_can_be_taken_back(self, owner, project) -> None:
        token = invite(project)
        invitation = Invitation.objects.get()
        answer = owner.post(reverse("invitation_revoke", args=[project.slug, invitation.pk]), follow=True)
        assert "taken back" in text(answer)
        assert "Revoked" in text(answer)
        page = Client().get(reverse("join_link", args=[token]))
        assert page.status_code == 410
        assert "has been taken back" in text(page)


class TestJoining:
    def test_looking_at_the_link_changes_nothing_and_tells_little(self, project, client_of) -> None:
        token = invite(project)
        for client in (Client(), client_of(make_user("ben"))):
            answer = client.get(reverse("join_link", args=[token]))
            assert answer.status_code == 200
            assert project.name in text(answer)
            assert "Your role: Annotator" in text(answer)
            assert answer.headers["Referrer-Policy"] == "strict-origin"
            assert "no-store" in answer.headers["Cache-Control"]
        assert Invitation.objects.get().uses == 0
        assert project.memberships.count() == 1
        assert not AuditEvent.objects.filter(action="invitation.used").exists()

    def test_somebody_who_is_logged_in_joins_with_one_button(self, project, client_of) -> None:
        ben = make_user("ben")
        answer = client_of(ben).post(reverse("join"), {"token": invite(project)}, follow=True)
        assert project.memberships.get(user=ben).role == "annotator"
        assert answer.redirect_chain[-1][0] == reverse("overview", args=[project.slug])
        assert "You take part in" in text(answer)

    def test_a_new_person_gets_an_account_and_is_in(self, project) -> None:
        client, token = Client(), invite(project)
        answer = client.post(reverse("join"), {**ACCOUNT, "token": token}, follow=True)
        assert answer.redirect_chain[-1][0] == reverse("overview", args=[project.slug])
        assert project.memberships.get(user__username="carl").role == "annotator"
        assert client.get(reverse("annotate", args=[project.slug])).status_code == 200
        again = Client().post(reverse("join"), {**ACCOUNT, "username": "dora", "token": token})
        assert again.status_code == 410
        assert "used up" in text(again)
        assert not User.objects.filter(username="dora").exists()

    @pytest.mark.parametrize(
        ("change", "words"),
        [({"again": "different-4711"}, "differ"), ({"password": "short", "again": "short"}, "too short"),
         ({"username": "ann b"}, "valid username"), ({"username": "taken"}, "already exists"),
         ({"email": "none"}, "valid email")],
    )  # fmt: skip
    def test_what_is_wrong_is_said_and_nothing_is_used(self, project, change, words) -> None:
        make_user("taken")
        answer = Client().post(reverse("join"), {**ACCOUNT, **change, "token": invite(project)})
        assert words in text(answer)
        assert 'role="alert"' in text(answer)
        assert GOOD not in text(answer)
        assert Invitation.objects.get().uses == 0
        assert User.objects.count() == 2

    def test_somebody_logs_in_first_and_finds_the_invitation_again(self, project) -> None:
        ben, client, token = make_user("ben"), Client(), invite(project)
        asked = client.post(reverse("join"), {"token": token, "log_in": "1"})
        assert asked.url == "/login/?next=/join/"
        answer = client.post(
            "/login/", {"username": "ben", "password": PASSWORD, "next": "/join/"}, follow=True
        )
        assert "Join as ben" in text(answer)
        client.post(reverse("join"), {"token": ""})
        assert project.memberships.filter(user=ben).exists()

    def test_a_member_is_told_so(self, project, client_of) -> None:
        ben = add_member(project, "viewer")
        client = client_of(ben)
        token = invite(project, role="owner")
        assert "already" in text(client.get(reverse("join_link", args=[token])))
        assert "already" in text(client.post(reverse("join"), {"token": token}))
        assert project.memberships.get(user=ben).role == "viewer"
        project.memberships.filter(user=ben).update(is_active=False)
        assert "Only an owner can switch it on again" in text(client.get(reverse("join_link", args=[token])))

    def test_no_invitation_is_404_and_says_nothing(self, project) -> None:
        for answer in (Client().get("/join/nonsense-nonsense/"), Client().get("/join/"),
                       Client().post("/join/", {"token": "x", **ACCOUNT})):  # fmt: skip
            assert answer.status_code == 404
            assert "There is no such invitation" in text(answer)
            assert project.name not in text(answer)

    def test_an_address_that_asks_too_often_waits(self, project, monkeypatch) -> None:
        monkeypatch.setattr(LinkThrottle, "rate", "3/min")
        client = Client()
        found = [client.get(f"/join/guess-{number}/").status_code for number in range(4)]
        assert found == [404, 404, 404, 429]
        token = invite(project)
        answer = client.get(reverse("join_link", args=[token]), headers={"X-Forwarded-For": "10.9.8.7"})
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) > 0
        other = Client(REMOTE_ADDR="10.1.2.3")
        assert other.get(reverse("join_link", args=[token])).status_code == 200

    def test_no_log_holds_the_token(self, project) -> None:
        token = invite(project, days=1)
        Invitation.objects.update(expires_at=timezone.now() - timedelta(days=1))
        lines: list[str] = []

        class Lines(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                lines.append(self.format(record))

        handler = Lines()
        handler.addFilter(HideTokens())
        logging.getLogger().addHandler(handler)
        try:
            client = Client(raise_request_exception=False)
            client.get(reverse("join_link", args=[token]))
            client.put(reverse("join_link", args=[token]))
            logging.getLogger("x").warning("GET %s", f"/login/?next=%2Fjoin%2F{token}%2F")
            logging.getLogger("x").warning("GET %s", f"/password/MQ/{token}/")
        finally:
            logging.getLogger().removeHandler(handler)
        assert len(lines) == 4
        assert token not in " ".join(lines)
        assert "/join/.../" in lines[0]


class TestPasswordLink:
    def test_an_owner_makes_it_and_it_works_once(self, owner, project) -> None:
        ann, _password = made_account(project)
        answer = owner.post(reverse("member_reset", args=[project.slug, ann.pk]))
        link = re.search(r'value="http://testserver(/password/[\w-]+/[\w-]+/)"', text(answer))[1]
        assert "no-store" in answer.headers["Cache-Control"]
        client = Client()
        form = client.get(link)
        assert form.url.endswith("/set-password/")  # the token is in the address no longer
        assert "For the account" in text(client.get(form.url))
        weak = client.post(form.url, {"new_password1": "1234", "new_password2": "1234"})
        assert 'role="alert"' in text(weak)
        done = client.post(form.url, {"new_password1": GOOD, "new_password2": GOOD}, follow=True)
        assert "Your password is set" in text(done)
        ann.refresh_from_db()
        assert ann.check_password(GOOD)
        assert AuditEvent.objects.filter(action="account.password_reset", actor=ann).count() == 1
        assert "holds no longer" in text(Client().get(link, follow=True))

    def test_none_for_somebody_who_takes_part_elsewhere(self, owner, project) -> None:
        ann, _password = made_account(project)
        add_member(make_project(), "annotator", ann)
        assert owner.post(reverse("member_reset", args=[project.slug, ann.pk])).status_code == 403
        page = text(owner.get(reverse("member", args=[project.slug, ann.pk])))
        assert "only for an account that was made in a project of theirs" in page


class TestAccount:
    def test_people_say_who_they_are(self, project, client_of, settings) -> None:
        settings.LANGUAGES = [("en", "English"), ("fr", "French")]
        ann = add_member(project)
        client = client_of(ann)
        fields = {"first_name": "Ann", "last_name": "<b>", "email": "a@example.org", "language": "fr"}
        assert client.post("/account/", fields).url == "/account/"
        ann.refresh_from_db()
        assert (ann.first_name, ann.email, ann.language, ann.single_key_shortcuts) == (
            "Ann", "a@example.org", "fr", False
        )  # fmt: skip
        client.post("/account/", {**fields, "language": "", "single_key_shortcuts": "on"})
        ann.refresh_from_db()
        assert (ann.language, ann.single_key_shortcuts) == ("", True)
        page = text(client.get("/account/"))
        assert "&lt;b&gt;" in page
        assert project.name in page

    @pytest.mark.parametrize("fields", [{"language": "xx"}, {"email": "no address"}])
    def test_what_cannot_be_is_refused(self, project, client_of, fields) -> None:
        ann = add_member(project)
        answer = client_of(ann).post("/account/", fields)
        assert 'role="alert"' in text(answer)
        ann.refresh_from_db()
        assert (ann.language, ann.email) == ("", "")

    def test_nobody_gives_themselves_more(self, project, client_of) -> None:
        ann = add_member(project)
        client_of(ann).post("/account/", {"is_staff": "on", "is_superuser": "on", "username": "root"})
        ann.refresh_from_db()
        assert (ann.is_staff, ann.is_superuser, ann.username != "root") == (False, False, True)


class TestMembers:
    def test_an_owner_changes_what_somebody_may_do(self, owner, project) -> None:
        ann = add_member(project)
        args = [project.slug, ann.pk]
        owner.post(reverse("member_limits", args=args), {"max_labels": "100", "max_per_day": ""})
        membership = project.memberships.get(user=ann)
        assert (membership.max_labels, membership.max_per_day) == (100, None)
        page = text(owner.post(reverse("member_limits", args=args), {"max_labels": "-1"}))
        assert 'role="alert"' in page
        owner.post(reverse("member_active", args=args), {"active": "0"})
        assert "not active" in text(owner.get(reverse("members", args=[project.slug])))
        client = Client()
        client.force_login(ann)
        assert client.get(reverse("overview", args=[project.slug])).status_code == 404
        owner.post(reverse("member_active", args=args), {"active": "1"})
        assert client.get(reverse("overview", args=[project.slug])).status_code == 200

    def test_only_owners_find_the_forms(self, project, client_of) -> None:
        ann = add_member(project)
        page = text(
            client_of(add_member(project, "manager")).get(reverse("member", args=[project.slug, ann.pk]))
        )
        assert "Labelled in all" in page
        assert '<form method="post" class' not in page

    def test_what_everybody_did_is_read_in_queries_that_do_not_grow_with_them(
        self, project, django_assert_max_num_queries
    ) -> None:
        label_some(project, [add_member(project) for _ in range(6)])
        with django_assert_max_num_queries(14):
            people(project)


class TestWork:
    @pytest.fixture
    def busy(self, project) -> tuple[Project, User, User]:
        ann, ben = add_member(project), add_member(project)
        label_some(project, [ann] * 4 + [ben])
        return project, ann, ben

    def test_counts_times_pace_and_cost(self, busy) -> None:
        project, ann, ben = busy
        found = {person.user: person.work for person in people(project)}
        mine = found[ann]
        # 1, 2, 3 and 4 seconds; one of them was corrected in half a second.
        assert (mine.labels, mine.today, mine.median, mine.active) == (4, 4, 2.5, 10.5)
        assert mine.pace == pytest.approx(4 * 3600 / 10)
        assert mine.cost == 4 * project.human_cost
        assert (found[ben].labels, found[ben].median, found[ben].skips, found[ben].flags) == (1, 5.0, 1, 1)
        assert found[project.created_by].labels == 0
        assert found[project.created_by].pace is None
        assert found[project.created_by].last is None

    def test_labels_of_another_project_do_not_count(self, busy) -> None:
        project, ann, _ = busy
        other = make_project()
        add_member(other, "annotator", ann)
        label_some(other, [ann])
        assert {person.work.labels for person in people(project) if person.user == ann} == {4}

    def test_the_table_is_sorted_by_what_was_asked(self, busy, owner) -> None:
        project, ann, ben = busy
        assert [p.user for p in people(project, sort="labels")][:2] == [ann, ben]
        assert [p.user for p in people(project, sort="median")][:2] == [ben, ann]
        assert people(project, sort="nonsense") == people(project)
        page = text(owner.get(reverse("members", args=[project.slug]), {"sort": "labels"}))
        assert re.search(
            r'<th scope="col" class="number" aria-sort="descending"><a href="\?sort=labels">', page
        )

    def test_a_persons_days_and_latest_labels(self, busy, owner) -> None:
        project, ann, _ = busy
        first = Label.objects.filter(annotator=ann, version=1).first()
        days = labels_per_day(project, ann)
        assert [(day.day, day.labels, day.share) for day in days] == [(timezone.localdate(), 4, 1.0)]
        labels, kept_back = latest_labels(project, ann)
        assert (len(labels), kept_back) == (4, False)
        page = text(owner.get(reverse("member", args=[project.slug, ann.pk])))
        assert first.item.external_id in page
        assert "corrected" in page

    def test_which_items_are_in_a_hidden_batch_is_not_told(self, busy, owner, monkeypatch) -> None:
        project, ann, _ = busy
        batch = project.work_batches.get().pk
        monkeypatch.setattr(routing_port(), "hidden_batches", lambda **_: {batch})
        assert latest_labels(project, ann) == ([], True)
        page = text(owner.get(reverse("member", args=[project.slug, ann.pk])))
        assert "Those for a run that is not analysed yet are not listed" in page
        for item in project.items.all():
            assert f">{item.external_id}<" not in page
        assert "<dd>4</dd>" in page


def label_some(project: Project, who: list[User]) -> None:
    """Each in turn labels one item, in 1, 2, 3, ... seconds; the first label is corrected, and the last
    person skips and flags the item that is left.
    """
    items = make_items(project, len(who) + 1)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=5
    )
    for number, user in enumerate(who, 1):
        task = queue.claim(project=project, user=user)
        label = queue.submit(
            user=user, work_item_id=task.work_item.pk, token=task.token, value="cat",
            idempotency_key=f"{project.pk}-{number}", lead_time_ms=1000 * number,
        )  # fmt: skip
        if number == 1:
            queue.correct(
                user=user, label_id=label.pk, value="dog", idempotency_key=f"{project.pk}-c", lead_time_ms=500
            )
    task = queue.claim(project=project, user=who[-1])
    queue.skip(user=who[-1], work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    Comment.objects.create(item=task.work_item.item, author=who[-1], is_flag=True)


@pytest.mark.parametrize("page", ["/login/", "/admin/login/", "/login/passkey/"])
@pytest.mark.parametrize(
    "wanted",
    ["/login/", "/login/?next=/login/", "/login/#x", "/login/passkey/", "/sign-on/", "/admin/login/"],
)
def test_whoever_is_logged_in_goes_from_a_log_in_to_none(page, wanted) -> None:
    admin = make_user("ada")
    User.objects.filter(pk=admin.pk).update(is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(admin)
    answer = client.get(page, {"next": wanted})
    assert (answer.status_code, answer["Location"]) == (302, "/")


def test_a_log_out_that_leads_to_itself_ends_at_the_log_in(client_of, project) -> None:
    client = client_of(project.created_by)
    answer = client.post("/logout/", {"next": "/logout/"}, follow=True)
    assert (answer.status_code, answer.request["PATH_INFO"]) == (200, "/login/")
