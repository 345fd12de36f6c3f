"""Names of accounts: which there may be, and that nobody gets one that is read for another's."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from annotation.errors import InputError
from annotation.models import User, usernames
from annotation.people.invitations import accept_with_new_account, create_invitation
from annotation.people.members import create_account, new_account
from testbed.factories import PASSWORD, make_project, make_user
from tests.routing.runs.test_script_commands import ended

pytestmark = pytest.mark.django_db
GOOD = "a-long-enough-4711"

# A name that is there, and one that is read for it.
ALIKE = [
    ("Owner_A", "owner_a"),
    ("Owner_A", "OWNER_A"),
    ("bob", "ｂｏｂ"),  # full width
    ("bob", "ВОВ"),  # Cyrillic
    ("cop", "сор"),  # Cyrillic
    ("oven", "ονεη"),  # Greek
    ("Ian", "lan"),
    ("ann1", "annl"),
    ("ann0", "anno"),
    ("modem", "modern"),
    ("alpha", "ɑlpha"),
    ("admin", "ạdmin"),  # a dot below
    ("straße", "STRASSE"),
]  # fmt: skip
MIXED = ["оwner", "pаypal", "Αlice", "nikоs", "ann٣", "bob\u3164", "ꓮꓲꓮ",
         "丨an", "\u1175an", "a工n", "卜om", "b口b"]  # fmt: skip
USUAL = ["ann", "Bob.Smith", "bob@example.org", "José", "Łukasz", "Ольга", "Ελένη", "שרה", "مريم", "김민수",
         "ヤマダ太郎", "ann_太郎", "工藤", "o+neil-2"]  # fmt: skip


@pytest.mark.parametrize("name", USUAL)
def test_people_of_everywhere_have_names(name) -> None:
    user, _ = new_account(project=None, actor=None, username=name)
    assert User.objects.get(username=user.username) == user
    assert Client().post("/login/", {"username": name, "password": "x"}).status_code == 200


@pytest.mark.parametrize(
    "name", [*MIXED, "b ob", "bob\u200b", "\u202ebob", "bo\u00adb", "bob\u2060", "a" * 151, ""]
)
def test_names_that_mix_alphabets_or_hold_what_nobody_sees_are_refused(name) -> None:
    with pytest.raises(InputError) as raised:
        new_account(project=None, actor=None, username=name)
    assert raised.value.where == "username"
    assert not User.objects.exists()


def test_blanks_around_a_name_are_no_part_of_it() -> None:
    new_account(project=None, actor=None, username="\u00a0bob\u2003")
    assert User.objects.get().username == "bob"


@pytest.mark.parametrize(("there", "like"), ALIKE)
def test_nobody_gets_a_name_that_is_read_for_anothers(there, like) -> None:
    make_user(there)
    project = make_project(make_user("zzz"))
    for make in (
        lambda: new_account(project=None, actor=None, username=like),
        lambda: create_account(project=project, actor=project.created_by, username=like, role="viewer"),
        lambda: join(project, like),
    ):
        with pytest.raises(InputError) as raised:
            make()
        assert raised.value.where == "username"
    with pytest.raises(CommandError):
        call_command("createsuperuser", "--noinput", username=like, email="")
    if User.normalize_username(like) != there:  # else the command finds the account
        assert ended("person", like, user="zzz")[0] == 1
    with pytest.raises(IntegrityError), transaction.atomic():  # whoever comes at the same moment
        User.objects.create(username=like)
    assert User.objects.count() == 2


def join(project, username: str) -> None:
    invitation, _ = create_invitation(
        project=project, actor=project.created_by, role="viewer", max_uses=1, days=1
    )
    accept_with_new_account(invitation=invitation, username=username, password=GOOD)


def test_the_administration_makes_no_such_account_either(client) -> None:
    root = make_user("root", is_staff=True, is_superuser=True)
    client.force_login(root)
    fields = {"password1": GOOD, "password2": GOOD, "usable_password": "true"}
    for name in ("Root", "rооt", "rоoт"):
        page = client.post(reverse("admin:annotation_user_add"), {"username": name, **fields})
        assert b"errorlist" in page.content
    assert User.objects.count() == 1
    assert client.post(reverse("admin:annotation_user_add"), {"username": "ann", **fields}).status_code == 302
    made = User.objects.get(username="ann")
    assert made.password_chosen_at is None
    page = reverse("admin:annotation_user_change", args=[made.pk])
    change = {"username": "ROOT", "date_joined_0": "2026-01-01", "date_joined_1": "00:00", "is_active": "on"}
    assert b"already exists" in client.post(page, change).content
    assert client.post(page, {**change, "username": "anna"}).status_code == 302
    made.refresh_from_db()
    assert (made.username_key, made.username_look) == ("anna", "anna")


def test_names_that_merely_share_letters_are_different() -> None:
    for name in ("Elia", "Ella", "ann", "anna", "nan", "mann", "bo", "bob"):
        new_account(project=None, actor=None, username=name)
    assert User.objects.count() == 8


class TestLoggingIn:
    def test_the_name_counts_as_it_is_stored(self) -> None:
        make_user("Bob")
        outcome = {
            name: Client().post("/login/", {"username": name, "password": PASSWORD}).status_code
            for name in ("Bob", "Ｂｏｂ", "bob", "BOB", "Воb")
        }
        assert outcome == {"Bob": 302, "Ｂｏｂ": 302, "bob": 200, "BOB": 200, "Воb": 200}

    def test_another_way_to_write_a_name_is_no_further_guess(self, settings) -> None:
        settings.AXES_FAILURE_LIMIT = 3
        make_user("bob")
        for name in ("ｂｏｂ", "bob", "ｂob"):
            answer = Client().post("/login/", {"username": name, "password": "wrong"})
        assert answer.status_code == 429
        for name in ("bob", "ｂｏｂ"):
            assert Client().post("/login/", {"username": name, "password": PASSWORD}).status_code == 429


def test_another_name_is_kept_apart_and_gives_the_first_one_free() -> None:
    renamed = make_user("bob")
    renamed.username = "robert"
    renamed.full_clean()
    renamed.save()
    assert User.objects.get(username_key="robert", username_look="robert") == renamed
    with pytest.raises(InputError):
        new_account(project=None, actor=None, username="Robert")
    assert new_account(project=None, actor=None, username="bob")


def test_people_of_other_programs_are_kept_apart_as_they_are() -> None:
    names = ["ann (Label Studio)", "Ann (Label Studio)", "аnn (Label Studio)"]
    User.objects.bulk_create(User(username=name, is_active=False) for name in names)
    assert User.objects.filter(username_key=None, username_look=None).count() == 3


def test_a_look_is_that_of_its_latin_letters() -> None:
    assert usernames.look_of("Ян") != usernames.look_of("RH")
    assert usernames.look_of("РОМА") == usernames.look_of("poma") == "poma"
    assert usernames.key_of("ﬁn") == "fin"


def test_the_command_tells_why() -> None:
    make_user("admin")
    out = io.StringIO()
    with pytest.raises(CommandError, match="looks like that of another account"):
        call_command("createsuperuser", "--noinput", username="adrnin", email="", stdout=out)
