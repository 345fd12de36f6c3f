"""Logging in by an OpenID Connect provider: whose account it is, and which projects their groups open.

Authlib speaks with the provider (discovery, code flow with PKCE, state, nonce, the ID token's signature and
claims); what is here begins with the claims that it found good.
"""

import logging
import re
import traceback
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import DjangoOAuth2App, OAuth
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from joserfc.errors import JoseError
from requests import RequestException

from annotation.common import audit
from annotation.errors import HypacError, NotAllowedError
from annotation.models import Membership, Project, User, usernames
from annotation.people.members import audit_name, change_role, join, save_new, set_active
from annotation.people.second_factor.change import forget as forget_second_factor, note
from annotation.people.second_factor.policy import has_second_factor

log = logging.getLogger(__name__)

Claims = Mapping[str, Any]
# Seconds for each answer of the provider.
PATIENCE = 10
# How what the provider says may be signed: by a key that it alone has, whatever else it can do.
SIGNED_BY = (
    *(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)),
    *("EdDSA", "Ed25519"),
)
_NO_SIGN = re.compile(r"[^\w@.+-]")
# Where a username comes from, the first that there is.
_NAMES = ("preferred_username", "email", "name")
_ADDRESS = ("email", "email_verified")
_ALIKE = 100  # names that differ by a number alone


class UnusableError(ValueError):
    """The provider says what cannot be used."""


# What Authlib raises where the provider cannot be reached, or says what cannot be used. It reads answers of
# other shapes than it expects as well as it can.
SAID = (AuthlibBaseError, JoseError, RequestException, UnusableError)
FAILURES = (*SAID, LookupError, ValueError, TypeError, AttributeError, RuntimeError)


class SecondStepFirstError(Exception):
    """The account would be taken over, and has a second step, which its holder shows first."""

    def __init__(self, user: User) -> None:
        super().__init__(user.pk)
        self.user = user


def provider() -> DjangoOAuth2App:
    """Its addresses and keys are asked for once by each process; the keys again when they have changed."""
    return _registered(
        settings.HYPAC_OIDC_ISSUER,
        settings.HYPAC_OIDC_CLIENT_ID,
        settings.HYPAC_OIDC_CLIENT_SECRET,
        settings.HYPAC_OIDC_SCOPES,
    )


@lru_cache(maxsize=1)
def _registered(issuer: str, client: str, secret: str, scopes: str) -> DjangoOAuth2App:
    return OAuth().register(
        name="provider",
        client_id=client,
        client_secret=secret or None,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={"scope": scopes, "code_challenge_method": "S256", "default_timeout": PATIENCE},
    )


def log_failure(what: str, error: Exception) -> None:
    """One of FAILURES: a line, or, where it is a fault of ours, its trace."""
    if isinstance(error, SAID) or not _was_ours(error):
        log.warning("%s: %s", what, _in_a_line(error))
    else:
        log.error(what, exc_info=error)


def _was_ours(error: Exception) -> bool:
    """Whether it was raised in this code, not in what reads for it."""
    *_frames, (last, _line) = traceback.walk_tb(error.__traceback__)
    return str(last.f_globals.get("__name__", "")).startswith(("annotation.", "hypac_site."))


def _in_a_line(error: Exception) -> str:
    """For the log. Of an error that the address or the provider tells, its code alone: the rest may be
    anything.
    """
    said = error.error if isinstance(error, AuthlibBaseError) else error
    return f"{type(error).__name__}: {_text(str(said), 300)}"


def claims_of(request: HttpRequest) -> tuple[dict[str, Any], str]:
    """What the provider says about whoever comes back from there, and the ID token. Raises FAILURES."""
    app = provider()
    there = app.load_server_metadata()
    if not isinstance(there, dict):
        raise UnusableError("what the provider says of itself is no object")
    # Whatever the provider lists: it may list "none", too.
    there["id_token_signing_alg_values_supported"] = list(SIGNED_BY)
    options = {
        "iss": {"essential": True, "value": settings.HYPAC_OIDC_ISSUER},
        "aud": {"essential": True, "value": settings.HYPAC_OIDC_CLIENT_ID},
    }
    token = app.authorize_access_token(request, claims_options=options)
    if "id_token" not in token or "userinfo" not in token:
        raise UnusableError("the provider gave no ID token")
    found = dict(token["userinfo"])
    if not isinstance(found.get("sub"), str) or not 0 < len(found["sub"]) <= 255:
        raise UnusableError("the ID token has no subject")
    if there.get("userinfo_endpoint"):
        # Providers differ in what they write into the token itself.
        more = dict(app.userinfo(token=token))
        if more.get("sub") != found["sub"]:
            raise UnusableError("the user information is of another subject than the ID token")
        found = _joined(found, more)
    return found, token["id_token"]


def _joined(id_token: Claims, userinfo: Claims) -> dict[str, Any]:
    """The ID token's claims before those of the user information. The address and whether it was verified
    are of one document: that which has both, else the one that has an address.
    """
    joined = {**userinfo, **id_token}
    for name in _ADDRESS:
        joined.pop(name, None)
    having = [document for document in (id_token, userinfo) if "email" in document]
    told = next(
        (document for document in having if "email_verified" in document), having[0] if having else {}
    )
    return joined | {name: told[name] for name in _ADDRESS if name in told}


def sign_on(claims: Claims, *, shown: User | None = None) -> User:
    """The account of whoever the provider vouches for; made where there is none yet. `shown`: whose second
    step they have shown here, too.

    Raises NotAllowedError where it is switched off here, or the name cannot be used; and
    SecondStepFirstError.
    """
    who = f"{settings.HYPAC_OIDC_ISSUER} {claims['sub']}"
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(sign_on=who).first()
        user = user or _linked(who, claims, shown) or _made(who, claims)
        if not user.is_active:
            raise NotAllowedError(
                _("This account is switched off. The person who runs this server can switch it on.")
            )
        _take_over(user, claims)
    _follow_groups(user, _groups(claims))
    return user


def log_out_address(*, id_token: str, back: str) -> str:
    """Where one logs out at the provider; "" where it has no such page, or cannot be asked."""
    try:
        address: str = provider().create_logout_url(
            post_logout_redirect_uri=back, id_token_hint=id_token, client_id=settings.HYPAC_OIDC_CLIENT_ID
        )["url"]
    except FAILURES:
        return ""
    return address if address.startswith(("https://", "http://")) else ""


def _linked(who: str, claims: Claims, shown: User | None) -> User | None:
    """The account that the same person had here with a password: known by an address that both sides saw
    confirmed. Not of those who run the server: whoever has their mailbox would run it. And where the account
    has a second step not by the address alone: it stands against just that.
    """
    if claims.get("email_verified") is not True or not isinstance(claims.get("email"), str):
        return None
    same = User.objects.select_for_update(no_key=True).filter(
        email__iexact=claims["email"],
        email_confirmed_at__isnull=False,
        sign_on__isnull=True,
        is_active=True,
        is_staff=False,
        is_superuser=False,
    )
    found = list(same[:2])
    # A database may take letters as equal that are another's mailbox: "ı" and "I" in PostgreSQL.
    if len(found) != 1 or not _one_mailbox(found[0].email, claims["email"]):
        return None
    user = found[0]
    if has_second_factor(user) and user != shown:
        raise SecondStepFirstError(user)
    user.sign_on = who
    user.set_unusable_password()  # which ends its sessions and tokens
    user.password_chosen_at = timezone.now()
    user.save(update_fields=["sign_on", "password", "password_chosen_at"])
    forget_second_factor(user)
    note(user, "account.linked", by=user)
    return user


def _one_mailbox(one: str, other: str) -> bool:
    """Whether two addresses differ at most in which letters of ASCII are large."""
    return one.encode(errors="surrogatepass").lower() == other.encode(errors="surrogatepass").lower()


def _made(who: str, claims: Claims) -> User:
    user = User(username=_free_name(claims), sign_on=who, password_chosen_at=timezone.now())
    user.set_unusable_password()
    save_new(user)
    audit.record(project=None, actor=user, action="account.signed_on_first", target=audit_name(user))
    return user


def _free_name(claims: Claims) -> str:
    """A name like that at the provider which nobody has here, and which looks like nobody's."""
    wished = next(filter(None, (_text(claims.get(name), 140) for name in _NAMES)), "")
    plain = User.normalize_username(_NO_SIGN.sub("", wished.replace(" ", ".")))
    if not plain or usernames.objection(plain):
        bare = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        plain = bare if bare and not usernames.objection(bare) else "person"
    for number in range(1, _ALIKE):
        name = plain if number == 1 else f"{plain}-{number}"
        try:
            User(username=name).clean()
        except ValidationError:
            continue
        return name
    raise NotAllowedError(
        _("No account can be made for the name %(name)s: too many are like it.") % {"name": plain}
    )


def _take_over(user: User, claims: Claims) -> None:
    """What the provider knows better than the person, each time."""
    user.signed_on_at = timezone.now()
    user.first_name = _text(claims.get("given_name"), 150) or user.first_name
    user.last_name = _text(claims.get("family_name"), 150) or user.last_name
    email = _text(claims.get("email"), 254)
    if email and "@" in email:
        if not _one_mailbox(email, user.email):
            if user.email:
                note(user, "account.email_changed", by=None)
            user.email_confirmed_at = None
        # Without signs that it had there it may be another mailbox.
        if claims.get("email_verified") is True and email == claims["email"]:
            user.email_confirmed_at = user.email_confirmed_at or user.signed_on_at
        user.email = email
    user.save(update_fields=["signed_on_at", "first_name", "last_name", "email", "email_confirmed_at"])


def _text(value: object, most: int) -> str:
    return "".join(c for c in value if c.isprintable())[:most].strip() if isinstance(value, str) else ""


def _groups(claims: Claims) -> set[str] | None:
    """Names of groups; None where the provider says nothing of them: then nothing changes."""
    found = claims.get(settings.HYPAC_OIDC_GROUPS_CLAIM)
    if isinstance(found, str):
        return {found}
    return {str(name) for name in found} if isinstance(found, list) else None


def _follow_groups(user: User, groups: set[str] | None) -> None:
    """Give the roles that the groups give, in the projects that the settings name; other memberships stay.

    Who is in none of a project's groups any more is switched off there: labels and limits stay. A change that
    the project refuses (its last owner leaves) is left, and logged.
    """
    if groups is None:
        return
    given: dict[str, list[str]] = {}
    for group, roles in settings.HYPAC_OIDC_GROUPS.items():
        for slug, role in roles.items():
            of_project = given.setdefault(slug, [])
            if group in groups:
                of_project.append(role)
    strongest = Membership.Role.values.index  # which begin with it
    for project in Project.objects.filter(slug__in=given, deleting_at__isnull=True).order_by("pk"):
        try:
            _set_role(project, user, min(given[project.slug], key=strongest, default=""))
        except HypacError as error:
            log.warning("groups of %s change nothing in %s: %s", user.username, project.slug, error)


def _set_role(project: Project, user: User, role: str) -> None:
    member = Membership.objects.filter(project=project, user=user).first()
    if member is None:
        if role:
            join(project=project, actor=None, user=user, role=role)
        return
    with transaction.atomic():
        if role and member.role != role:
            change_role(project=project, actor=None, user=user, role=role)
        if member.is_active != bool(role):
            set_active(project=project, actor=None, user=user, active=bool(role))
