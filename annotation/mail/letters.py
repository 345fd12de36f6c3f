"""What letters say: one function a kind makes subject, sentences and the way on, in the reader's language."""

from collections.abc import Callable
from dataclasses import dataclass
from email.utils import make_msgid
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core import signing
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import get_language, gettext as _, gettext_noop, ngettext, override

from annotation import failures
from annotation.common import mail as kinds
from annotation.models import Invitation, Job, Mail, Membership, User
from annotation.outside.secrets import decrypt
from annotation.people.invitations import OPEN, state_of
from annotation.people.password_links import HOURS, tokens

CONFIRMS, ENDS = "annotation.mail.confirm", "annotation.mail.ends"
NOTICES, WORK = "notices", "work"
CONFIRM_DAYS = 3


@dataclass(frozen=True)
class Letter:
    """`path` is where its button leads; `ends` the wish that switches such letters off, "" for none."""

    subject: str
    lines: list[str]
    button: str
    path: str
    ends: str = ""


def confirm_token(user: User) -> str:
    return signing.dumps([user.pk, user.email], salt=CONFIRMS)


def ends_token(user: User, wish: str) -> str:
    return signing.dumps([user.pk, wish], salt=ENDS)


def as_message(mail: Mail) -> EmailMultiAlternatives:
    """The letter in plain text and HTML. Raises InputError where its secret cannot be read any more."""
    with override(mail.language or settings.LANGUAGE_CODE):
        letter = LETTERS[mail.kind](mail)
        headers = {
            "Message-ID": make_msgid(f"hypac.{mail.pk}", domain=urlsplit(settings.HYPAC_ADDRESS).hostname),
            "Auto-Submitted": "auto-generated",
        }
        ends = ""
        if letter.ends and mail.user:
            token = ends_token(mail.user, letter.ends)
            ends = settings.HYPAC_ADDRESS + reverse("mail_ends", args=[token])
            headers["List-Unsubscribe"] = f"<{ends}>"
            headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"  # RFC 8058
        shown = {
            "letter": letter,
            "link": settings.HYPAC_ADDRESS + letter.path,
            "ends": ends,
            "site": settings.HYPAC_ADDRESS,
            "language": get_language(),
        }
        # A subject is one line, whatever a project is called.
        message = EmailMultiAlternatives(
            subject=" ".join(letter.subject.split()),
            body=render_to_string("mail/letter.txt", shown),
            from_email=settings.HYPAC_MAIL_FROM,
            to=[mail.to],
            headers=headers,
        )
        message.attach_alternative(render_to_string("mail/letter.html", shown), "text/html")
    return message


def _confirm(mail: Mail) -> Letter:
    user = _user(mail)
    return Letter(
        _("Confirm your e-mail address"),
        [
            _("Somebody gave this address for the account %(name)s.") % {"name": user.username},
            _("If that was you, confirm it within %(days)s days: HyPAC then writes to it.")
            % {"days": CONFIRM_DAYS},
            _("If it was not, do nothing."),
        ],
        _("Confirm the address"),
        reverse("mail_confirm", args=[confirm_token(user)]),
    )


def _password(mail: Mail) -> Letter:
    user = _user(mail)
    made: PasswordResetTokenGenerator = tokens
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return Letter(
        _("Set a new password"),
        [
            _("Somebody asked for a new password of the account %(name)s.") % {"name": user.username},
            _("If that was you, set one within %(hours)s hours.") % {"hours": HOURS},
            _("If it was not, do nothing: your password stays."),
        ],
        _("Set a new password"),
        reverse("password_reset", args=[uid, made.make_token(user)]),
    )


def _invitation(mail: Mail) -> Letter:
    named = {"project": mail.data["name"], "who": mail.data["who"]}
    role = str(dict(Membership.Role.choices)[mail.data["role"]])
    return Letter(
        _("Invitation to %(project)s") % named,
        [
            _("%(who)s invites you to the project %(project)s.") % named,
            _("Your role there: %(role)s.") % {"role": role},
            _("Whoever has this link can join with it once: do not pass it on."),
        ],
        _("Join the project"),
        reverse("join_link", args=[decrypt(mail.secret)]),
    )


def _work(mail: Mail) -> Letter:
    rows = mail.data["projects"]
    total = sum(row["count"] for row in rows)
    lines = [
        ngettext("%(count)s item in %(project)s", "%(count)s items in %(project)s", row["count"])
        % {"count": row["count"], "project": row["name"]}
        for row in rows
    ]
    path = reverse("annotate", args=[rows[0]["project"]]) if len(rows) == 1 else reverse("project_list")
    subject = ngettext("%(count)s item waits for you", "%(count)s items wait for you", total)
    return Letter(subject % {"count": total}, lines, _("Label"), path, WORK)


RUNS = {
    "run.calibration_done": (
        gettext_noop("%(project)s: run %(run)s can be analysed"),
        gettext_noop("All calibration labels of run %(run)s in %(project)s are there."),
    ),
    "run.completed": (
        gettext_noop("%(project)s: run %(run)s is complete"),
        gettext_noop(
            "Nobody has anything left to label in run %(run)s of %(project)s. Its page says what comes next."
        ),
    ),
    "run.audit_alarm": (
        gettext_noop("%(project)s: an alarm in run %(run)s"),
        gettext_noop("The audit of run %(run)s in %(project)s found more errors than were accepted."),
    ),
}
"""Of what happens in a run the subject, and what is said of it."""


LINKED, ADDRESS = "account.linked", "account.email_changed"
LOG_IN = {
    ADDRESS: gettext_noop(
        "The e-mail address of the account %(name)s was changed. This is the last letter to the old one."
    ),
    "account.password_changed": gettext_noop("The password of the account %(name)s was changed."),
    "account.password_reset": gettext_noop("The password of the account %(name)s was set anew by a link."),
    "account.password_set": gettext_noop(
        "Whoever runs the server set a new password for the account %(name)s."
    ),
    "account.app_set_up": gettext_noop("An authenticator app was set up for the account %(name)s."),
    "account.app_removed": gettext_noop("The authenticator app of the account %(name)s was removed."),
    "account.passkey_added": gettext_noop("A passkey was added to the account %(name)s."),
    "account.passkey_removed": gettext_noop("A passkey of the account %(name)s was removed."),
    "account.recovery_codes_made": gettext_noop("New recovery codes were made for the account %(name)s."),
    "account.recovery_code_used": gettext_noop("A recovery code of the account %(name)s was used to log in."),
    "account.second_factor_reset": gettext_noop(
        "Whoever runs the server ended the two-step log-in of the account %(name)s."
    ),
    "account.second_step_failed": gettext_noop(
        "Somebody came as far as the second step of the log-in to the account %(name)s, and failed at it."
    ),
    LINKED: gettext_noop(
        "From now on the log-in provider lets into the account %(name)s; its password and two-step log-in "
        "are gone."
    ),
}
"""Of how somebody logs in, what they are told."""
# After these, whoever it was not can change no password any more.
TELL_SERVER = {LINKED, ADDRESS, "account.password_changed", "account.password_reset", "account.password_set"}


def _log_in(mail: Mail) -> Letter:
    if mail.kind in TELL_SERVER:
        else_do = _("If that was you, do nothing. If it was not, tell whoever runs the server at once.")
    else:
        else_do = _(
            "If that was you, do nothing. If it was not, change your password and look at your account."
        )
    return Letter(
        _("How you log in to HyPAC"),
        [
            _(LOG_IN[mail.kind]) % {"name": _user(mail).username},
            else_do,
        ],
        _("Open your account"),
        reverse("account"),
    )


def _run(mail: Mail) -> Letter:
    named = {"project": mail.data["name"], "run": mail.data["run"]}
    subject, line = (_(words) % named for words in RUNS[mail.kind])
    path = reverse("run", args=[mail.data["project"], mail.data["run"]])
    return Letter(subject, [line], _("Open the run"), path, NOTICES)


def _broken(mail: Mail) -> Letter:
    named = {"project": mail.data["name"], "run": mail.data["run"]}
    lines = [
        _("The certificate of run %(run)s in %(project)s no longer holds.") % named,
        failures.part_in_words(mail.data["why"], mail.data["why"]["words"]),
        _(
            "What was delivered from this run is promised no more: tell whoever uses it. For labels with a "
            "certificate start a new run."
        ),
    ]
    path = reverse("run", args=[mail.data["project"], mail.data["run"]])
    subject = _("%(project)s: the certificate of run %(run)s no longer holds") % named
    return Letter(subject, lines, _("Open the run"), path, NOTICES)


def _paused(mail: Mail) -> Letter:
    named = {"project": mail.data["name"]}
    lines = [
        _("Somebody is paused in %(project)s: too few of their answers to gold items were right.") % named,
        _("They are given no more items until you let them go on."),
    ]
    path = reverse("held_out", args=[mail.data["project"]])
    return Letter(_("%(project)s: somebody is paused") % named, lines, _("See who"), path, NOTICES)


def _job_failed(mail: Mail) -> Letter:
    named = {"project": mail.data["name"]}
    job = Job.objects.filter(pk=mail.data["job"]).first()
    lines = [_("Work in the background has failed in %(project)s.") % named]
    if job is not None and job.error_in_words:
        lines.append(job.error_in_words)
    lines.append(_("More that fails within this hour is on the page of the jobs alone."))
    path = reverse("job", args=[mail.data["project"], mail.data["job"]])
    return Letter(_("%(project)s: a job has failed") % named, lines, _("Open the job"), path, NOTICES)


def _user(mail: Mail) -> User:
    assert mail.user is not None  # noqa: S101 - stored with one
    return mail.user


LETTERS: dict[str, Callable[[Mail], Letter]] = {
    kinds.CONFIRM: _confirm,
    kinds.PASSWORD: _password,
    kinds.INVITATION: _invitation,
    kinds.WORK: _work,
    **dict.fromkeys(RUNS, _run),
    **dict.fromkeys(LOG_IN, _log_in),
    "certificate.broken": _broken,
    "annotator.paused": _paused,
    "job.failed": _job_failed,
}


def still_wanted(mail: Mail) -> bool:
    """Whether the letter may go out as things are now: what was stored may have waited."""
    user = mail.user
    if mail.kind == kinds.INVITATION:
        invitation = Invitation.objects.filter(pk=mail.data["invitation"]).first()
        return invitation is not None and state_of(invitation) == OPEN
    if user is None:
        return False
    if not user.is_active:
        return False
    if mail.kind == ADDRESS:  # to the one that was confirmed before
        return True
    if user.email != mail.to:
        return False
    if mail.kind == kinds.CONFIRM:
        return user.email_confirmed_at is None
    if user.email_confirmed_at is None:
        return False
    if mail.kind == kinds.PASSWORD or mail.kind in LOG_IN:
        return True
    if mail.kind == kinds.WORK:
        return user.mail_work
    return user.mail_notices and _leads(user, mail.data)


def _leads(user: User, data: dict[str, Any]) -> bool:
    mine = user.memberships.filter(project__slug=data["project"], is_active=True, role__in=kinds.LEADERS)
    return mine.filter(project__deleting_at__isnull=True).exists()
