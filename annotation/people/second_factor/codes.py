"""Codes that people type: of an authenticator app (TOTP, RFC 6238), and for when that is lost."""

import base64
import hashlib
import logging
import secrets
import time

from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.utils import timezone

from annotation.errors import InputError
from annotation.models import AuthenticatorApp, RecoveryCode, User
from annotation.outside.secrets import decrypt

log = logging.getLogger(__name__)

# What apps take for granted, some of them whatever they are told.
DIGITS, PERIOD = 6, 30
# Seconds by which the clock of a phone may be off, and somebody slow.
LATE = PERIOD
# So long that SHA-256 alone keeps them: 120 random bits are beyond any search (ASVS 6.5.2 asks for 112).
RECOVERY_CODES, RECOVERY_BYTES = 10, 15
APP, RECOVERY = "app", "recovery"


def new_secret() -> str:
    """160 random bits in base 32, as RFC 4226 advises."""
    return base64.b32encode(secrets.token_bytes(20)).decode()


def provisioning_uri(secret: str, *, name: str) -> str:
    """What an app reads from the QR code."""
    return _totp(secret).get_provisioning_uri(name, "HyPAC")


def step_of(secret: str, typed: str) -> int | None:
    """The half minute whose code `typed` is, among those that count now."""
    code, now = _plain(typed), time.time()
    if len(code) != DIGITS or not (code.isascii() and code.isdigit()):
        return None
    totp = _totp(secret)
    for moment in (now - LATE, now, now + LATE):
        step = int(moment) // PERIOD
        if bytes_eq(totp.generate(int(moment)), code.encode()):
            return step
    return None


def use_code(user: User, typed: str) -> str:
    """Whether `typed` lets `user` in, once: APP or RECOVERY by which of their codes; "" where it does not."""
    if _use_app(user, typed):
        return APP
    return RECOVERY if _use_recovery(user, typed) else ""


def make_recovery_codes(user: User) -> list[str]:
    """New ones in place of those of before, stored as hashes. Call it inside a transaction."""
    RecoveryCode.objects.filter(user=user).delete()
    bits = (secrets.token_bytes(RECOVERY_BYTES) for _ in range(RECOVERY_CODES))
    made = [base64.b32encode(one).decode().lower() for one in bits]
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, code_hash=_hash(user, code)) for code in made)
    return ["-".join(code[start : start + 4] for start in range(0, len(code), 4)) for code in made]


def _use_app(user: User, typed: str) -> bool:
    app = AuthenticatorApp.objects.filter(user=user).first()
    if app is None:
        return False
    try:
        step = step_of(decrypt(app.secret), typed)
    except InputError:
        log.error("The secret of the authenticator app of account %s cannot be read any more.", user.pk)
        return False
    if step is None:
        return False
    # None holds twice, nor one from before it; of two at once with the same code one gets in.
    unused = AuthenticatorApp.objects.filter(pk=app.pk, last_step__lt=step)
    return unused.update(last_step=step, last_used_at=timezone.now()) == 1


def _use_recovery(user: User, typed: str) -> bool:
    mine = RecoveryCode.objects.filter(user=user, code_hash=_hash(user, _plain(typed)))
    return mine.delete()[0] == 1


def _hash(user: User, code: str) -> str:
    """With the account's number, so that of many accounts none is found by guessing for all at once."""
    return hashlib.sha256(f"{user.pk}:{code}".encode(errors="surrogatepass")).hexdigest()


def _plain(typed: str) -> str:
    return "".join(sign for sign in typed.lower() if sign.isalnum())


def _totp(secret: str) -> TOTP:
    # SHA-1, as apps do; HMAC needs no resistance against collisions.
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), PERIOD)  # noqa: S303
