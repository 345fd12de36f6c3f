"""Two-step log-in with an authenticator app and recovery codes; who has to have one; what ends it."""

import re
import time

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth import SESSION_KEY
from django.contrib.messages import get_messages
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation.errors import InputError
from annotation.models import AuditEvent, AuthenticatorApp, Mail, RecoveryCode, User
from annotation.outside.secrets import encrypt
from annotation.people import attempt_limits, own_data
from annotation.people.erase import erase_person
from annotation.people.password_links import reset_link
from annotation.people.second_factor import change, codes
from annotation.people.sign_on import sign_on
from annotation.people.tokens import make_token
from routing.sources.stored_keys import rotate_stored_keys
from testbed.factories import PASSWORD, add_member, made_account, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
STEP = "/login/second-step/"
PAGE = "/account/second-step/"


@pytest.fixture(autouse=True)
def in_the_middle(monkeypatch) -> None:
    """No test runs over the end of a half minute."""
    now = time.time() // codes.PERIOD * codes.PERIOD + 10
    monkeypatch.setattr(codes.time, "time", lambda: now)


@pytest.fixture
def ann() -> User:
    return make_user("ann")


def code_of(secret: str, *, steps: int = 0) -> str:
    return codes._totp(secret).generate(int(codes.time.time()) + steps * codes.PERIOD).decode()


def with_app(user: User) -> tuple[str, list[str]]:
    """Its secret, and recovery codes; the code of the half minute before is used up by that."""
    secret = codes.new_secret()
    return secret, change.set_up_app(user=user, secret=secret, code=code_of(secret, steps=-1))


def half_way(name: str = "ann", *, wanted: str = "") -> Client:
    """Somebody who knows the password."""
    client = Client()
    answer = client.post("/login/", {"username": name, "password": PASSWORD, "next": wanted})
    assert answer["Location"] == STEP
    return client


def is_in(client: Client) -> bool:
    return SESSION_KEY in client.session


def actions(user: User) -> list[str]:
    about = AuditEvent.objects.filter(data__user=user.pk).order_by("pk")
    return list(about.values_list("action", flat=True))


def test_an_app_is_set_up_with_a_code_and_the_password(ann, client) -> None:
    client.force_login(ann)
    page = client.get(f"{PAGE}app/")
    secret = re.search(r'id="link"[^>]* value="([A-Z2-7 ]+)"', page.content.decode())[1].replace(" ", "")
    assert "data:image/svg+xml" in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    wrong = {"code": code_of(secret), "password": "wrong"}
    assert "That is not your password" in client.post(f"{PAGE}app/", wrong).content.decode()
    wrong = {"code": code_of(codes.new_secret()), "password": PASSWORD}
    again = client.post(f"{PAGE}app/", wrong).content.decode()
    assert "not the code" in again
    assert secret[:4] in again, "the app need not read another square"
    assert not AuthenticatorApp.objects.exists()

    made = client.post(f"{PAGE}app/", {"code": code_of(secret), "password": PASSWORD})
    shown = re.findall(r"\b(?:[a-z2-7]{4}-){5}[a-z2-7]{4}\b", made.content.decode())
    assert len(set(shown)) == codes.RECOVERY_CODES
    assert "no-store" in made["Cache-Control"]
    assert actions(ann) == ["account.app_set_up"]
    app = AuthenticatorApp.objects.get()
    assert secret not in app.secret
    assert secret not in client.get(f"{PAGE}").content.decode()
    assert client.get(f"{PAGE}app/").status_code == 302, "it is shown no more"
    hashes = set(RecoveryCode.objects.values_list("code_hash", flat=True))
    assert not hashes & {code.replace("-", "") for code in shown}


def test_the_password_alone_lets_nobody_in_and_a_code_holds_once(ann) -> None:
    secret, _recovery = with_app(ann)
    client = half_way(wanted="/account/?x=1")
    before = client.session.session_key
    assert not is_in(client)
    assert client.get("/account/").status_code == 302
    assert "does not let you in" in client.post(STEP, {"code": "000 000"}).content.decode()
    answer = client.post(STEP, {"code": f" {code_of(secret)[:3]} {code_of(secret)[3:]} "})
    assert answer["Location"] == "/account/?x=1"
    assert is_in(client)
    assert client.session.session_key != before
    assert client.get(STEP)["Location"] == "/"

    other = half_way()
    assert not other.post(STEP, {"code": code_of(secret)}).has_header("Location"), "it was used"
    assert not other.post(STEP, {"code": code_of(secret, steps=-1)}).has_header("Location"), "an older one"
    assert not other.post(STEP, {"code": code_of(secret, steps=2)}).has_header("Location"), "too early"
    assert other.post(STEP, {"code": code_of(secret, steps=1)})["Location"] == "/"


def test_a_phone_may_be_half_a_minute_off_and_no_more(ann) -> None:
    secret = codes.new_secret()
    found = []
    for steps in range(-3, 4):
        AuthenticatorApp.objects.all().delete()
        app = AuthenticatorApp.objects.create(user=ann, secret=encrypt(secret))
        found.append((steps, codes.use_code(ann, code_of(secret, steps=steps))))
        assert codes.use_code(ann, code_of(secret, steps=steps)) == "", "once"
        app.refresh_from_db()
        assert bool(app.last_step) == (found[-1][1] == codes.APP)
    assert [steps for steps, by in found if by] == [-1, 0, 1]


def test_recovery_codes_are_so_long_that_a_plain_hash_keeps_them(ann) -> None:
    _secret, recovery = with_app(ann)
    signs = [code.replace("-", "") for code in recovery]
    assert {len(code) * 5 for code in signs} == {120}
    assert len(set("".join(signs))) > 25, "of all 32 signs"


def test_a_session_known_before_the_password_is_not_the_one_that_gets_in(ann) -> None:
    with_app(ann)
    client = Client()
    session = client.session
    session["planted"] = True
    session.save()
    client.cookies["sessionid"] = session.session_key
    client.post("/login/", {"username": "ann", "password": PASSWORD})
    assert client.session["second_step"]["user"] == ann.pk
    assert client.session.session_key != session.session_key


@pytest.mark.parametrize("wanted", ["//evil.example/", "https://evil.example/", "/logout/", "/nothing/"])
def test_nobody_is_sent_to_another_site_or_to_nothing(ann, wanted) -> None:
    secret, _recovery = with_app(ann)
    assert half_way(wanted=wanted).post(STEP, {"code": code_of(secret)})["Location"] == "/"
    assert Client().get("/login/passkey/", {"next": wanted}).status_code == 200


def test_a_recovery_code_lets_in_once_and_is_told(ann, settings) -> None:
    settings.HYPAC_MAIL_URL = "smtp://localhost"
    User.objects.filter(pk=ann.pk).update(email="ann@lab.example", email_confirmed_at=timezone.now())
    _secret, recovery = with_app(User.objects.get(pk=ann.pk))
    client = half_way()
    answer = client.post(STEP, {"code": recovery[0].upper().replace("-", " ")})
    assert "used up. How many you still have: 9" in str(next(iter(get_messages(answer.wsgi_request))))
    again = half_way()
    again.post(STEP, {"code": recovery[0]})
    assert not is_in(again)
    kinds = ["account.app_set_up", "account.recovery_code_used", "account.second_step_failed"]
    assert actions(ann) == kinds
    assert sorted(Mail.objects.values_list("kind", flat=True)) == kinds
    half_way().post(STEP, {"code": "123456"})
    assert Mail.objects.count() == 3, "of failures once a day"

    new = client.post(f"{PAGE}codes/", {"password": PASSWORD}).content.decode()
    assert recovery[1] not in new
    assert not codes.use_code(ann, recovery[1]), "those of before hold no more"


def test_what_was_begun_ends_with_time_a_new_password_or_the_account(ann, monkeypatch) -> None:
    secret, _recovery = with_app(ann)
    clients = [half_way() for _ in range(3)]
    now = time.time()
    monkeypatch.setattr("annotation.people.second_factor.steps.time.time", lambda: now + 601)
    assert clients[0].get(STEP)["Location"] == "/login/"
    monkeypatch.undo()
    ann.set_password("another long enough one")
    ann.save()
    assert clients[1].get(STEP)["Location"] == "/login/"
    ann.set_password(PASSWORD)
    ann.save()
    User.objects.update(is_active=False)
    assert clients[2].post(STEP, {"code": code_of(secret)})["Location"] == "/login/"
    assert Client().get(STEP)["Location"] == "/login/", "nor can it be begun here"


@pytest.mark.parametrize(("hour", "most"), [("10/h", 10), ("100/h", 30)])
def test_codes_are_counted_for_the_account_from_wherever_and_apart_on_its_own_device(
    ann, monkeypatch, hour: str, most: int
) -> None:
    """By the hour, and by the day."""
    monkeypatch.setattr(attempt_limits, "CODES", hour)
    secret, _recovery = with_app(ann)
    mine = half_way()
    mine.post(STEP, {"code": code_of(secret)})
    mine.post("/logout/")
    found = []
    for number in range(most + 1):
        stranger = Client(REMOTE_ADDR=f"192.0.2.{number}")
        stranger.post("/login/", {"username": "ann", "password": PASSWORD})
        found.append(stranger.post(STEP, {"code": "000000"}).status_code)
    assert found == [200] * most + [429]
    mine.post("/login/", {"username": "ann", "password": PASSWORD})
    assert mine.post(STEP, {"code": code_of(secret, steps=1)})["Location"] == "/"


def test_right_passwords_before_a_second_step_use_nothing_up(ann, settings) -> None:
    settings.HYPAC_LOGIN_RATES = {"address": "3/min", "all": "100/min"}
    people = [ann, make_user("bob"), make_user("cyd"), make_user("dan"), make_user("eve")]
    for user in people:
        with_app(user)
        half_way(user.username)


def test_the_administration_has_no_way_round_it(ann) -> None:
    User.objects.update(is_staff=True, is_superuser=True)
    with_app(ann)
    client = Client()
    answer = client.post("/admin/login/?next=/admin/", {"username": "ann", "password": PASSWORD})
    assert answer["Location"] == STEP
    assert not is_in(client)
    client.force_login(make_user("bob"))
    assert client.get("/admin/login/?next=/admin/").status_code == 403, "no circle"


def test_a_new_password_by_a_link_leaves_the_second_step(client) -> None:
    project = make_project()
    made, _first = made_account(project)
    secret, _recovery = with_app(made)
    uid, token = reset_link(project=project, actor=project.created_by, user=made)
    page = client.get(f"/password/{uid}/{token}/", follow=True)
    new = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    assert client.post(page.redirect_chain[-1][0], new)["Location"] == "/login/"
    client = half_way(made.username)
    assert client.post(STEP, {"code": code_of(secret)})["Location"] == "/"


def test_removing_the_last_one_asks_for_the_password_and_ends_recovery_codes(ann, client) -> None:
    with_app(ann)
    client.force_login(ann)
    client.post(f"{PAGE}app/remove/", {"password": "wrong"})
    assert AuthenticatorApp.objects.exists()
    client.post(f"{PAGE}app/remove/", {"password": PASSWORD})
    assert not AuthenticatorApp.objects.exists()
    assert not RecoveryCode.objects.exists()
    assert actions(ann)[-1] == "account.app_removed"
    assert client.get(f"{PAGE}codes/")["Location"] == PAGE
    assert Client().post("/login/", {"username": "ann", "password": PASSWORD})["Location"] == "/"


def test_whoever_runs_the_server_ends_it_for_somebody_who_lost_everything(ann, capsys) -> None:
    with_app(ann)
    call_command("person", "reset-second-factor", "ann")
    call_command("person", "reset-second-factor", "ann")
    told = capsys.readouterr().out
    assert "ann has no two-step log-in any more." in told
    assert "ann had no two-step log-in." in told
    event = AuditEvent.objects.get(action="account.second_factor_reset")
    assert (event.actor, event.data["user"]) == (None, ann.pk)
    assert Client().post("/login/", {"username": "ann", "password": PASSWORD})["Location"] == "/"
    with pytest.raises(CommandError, match="no account 'nobody'"):
        call_command("person", "reset-second-factor", "nobody")


@pytest.mark.parametrize(
    ("of", "led"),
    [
        ("none", set()),
        ("administrators", {"admin"}),
        ("managers", {"admin", "manager"}),
        ("everyone", {"admin", "manager", "labeller"}),
    ],
)
def test_who_has_to_have_one_is_led_there_before_anything_else(settings, of, led) -> None:
    settings.HYPAC_REQUIRE_SECOND_FACTOR = of
    project = make_project(make_user("owner"))
    people = {
        "admin": make_user("admin", is_staff=True),
        "manager": add_member(project, "manager"),
        "labeller": add_member(project, "annotator"),
        "provided": make_user("provided", sign_on="https://id.example 1"),
    }
    settings.HYPAC_OIDC_ISSUER = "https://id.example"
    found = set()
    for name, user in people.items():
        client = Client()
        backend = "SignOnBackend" if name == "provided" else "PasswordBackend"
        client.force_login(user, f"annotation.people.log_in.{backend}")
        if client.get("/").status_code == 302:
            found.add(name)
    assert found == led


def test_led_there_only_what_sets_it_up_is_open_and_tokens_go_on(ann, client, settings) -> None:
    settings.HYPAC_REQUIRE_SECOND_FACTOR = "everyone"
    client.force_login(ann)
    for path in ("/", "/account/", "/account/data/", "/account/tokens/", "/help/", "/admin/"):
        assert client.get(path)["Location"] == PAGE, path
    assert client.get("/", headers={"HX-Request": "true"})["HX-Redirect"] == PAGE
    assert "asks a second step of you" in client.get(PAGE).content.decode()
    for path in (f"{PAGE}app/", f"{PAGE}passkeys/new/", "/password/", "/healthz"):
        assert client.get(path).status_code == 200, path
    refused = client.get("/api/v1/projects/")
    assert (refused.status_code, refused.json()["code"]) == (403, "second_factor_first")
    _row, secret = make_token(user=ann, name="nightly")
    for program in (client, Client()):
        answer = program.get("/api/v1/projects/", headers={"Authorization": f"Token {secret}"})
        assert answer.status_code == 200
    assert client.get("/", headers={"Authorization": f"Token {secret}"})["Location"] == PAGE
    with_app(ann)
    client.force_login(ann)
    assert client.get("/account/").status_code == 200


def test_an_account_of_the_provider_has_none_here(ann, client, settings) -> None:
    settings.HYPAC_OIDC_ISSUER = "https://id.example"
    User.objects.filter(pk=ann.pk).update(email="ann@lab.example", email_confirmed_at=timezone.now())
    with_app(ann)
    same = sign_on({"sub": "1", "email": "ann@lab.example", "email_verified": True}, shown=ann)
    assert same == ann
    assert not AuthenticatorApp.objects.exists()
    assert not RecoveryCode.objects.exists()
    client.force_login(same, "annotation.people.log_in.SignOnBackend")
    for path in (PAGE, f"{PAGE}app/", f"{PAGE}passkeys/new/", f"{PAGE}passkeys/create/", f"{PAGE}codes/"):
        assert client.get(path)["Location"] == "/account/", path
    assert "second-step" not in client.get("/account/").content.decode()


def test_secrets_are_rotated_and_one_that_is_lost_leaves_recovery_codes(ann, settings) -> None:
    secret, recovery = with_app(ann)
    settings.HYPAC_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    stored = AuthenticatorApp.objects.get().secret
    assert rotate_stored_keys().rotated == 1
    assert AuthenticatorApp.objects.get().secret != stored
    assert codes.use_code(ann, code_of(secret)) == codes.APP
    settings.HYPAC_ENCRYPTION_KEYS = []
    assert rotate_stored_keys().lost == ("app of ann",)
    assert codes.use_code(ann, code_of(secret, steps=1)) == ""
    assert codes.use_code(ann, recovery[0]) == codes.RECOVERY


def test_ones_own_data_says_that_it_is_there_and_nothing_that_opens(ann) -> None:
    secret, recovery = with_app(ann)
    told = b"".join(own_data.stream(ann)).decode()
    assert '"recovery_codes": [\n{"unused": 10}]' in told
    hashed = RecoveryCode.objects.first().code_hash
    kept = [AuthenticatorApp.objects.get().secret, secret, recovery[0], hashed]
    assert not [text for text in kept if text in told]


def test_nothing_is_stored_of_an_account_that_was_erased_meanwhile(ann) -> None:
    erase_person(user=User.objects.get(pk=ann.pk), actor=None, typed="ann")
    for late in (lambda: with_app(ann), lambda: change.new_recovery_codes(user=ann)):
        with pytest.raises(InputError, match="was erased"):
            late()
    assert not AuthenticatorApp.objects.exists()
    assert not AuditEvent.objects.filter(target="user:ann").exists()
