"""Secrets at rest: keys of model servers are stored encrypted (Fernet: AES-128-CBC with HMAC-SHA-256).

The first of HYPAC_ENCRYPTION_KEYS encrypts. All of them decrypt, and so does a key derived from the secret
key of the site; that one also encrypts where none is set. A plain secret is held no longer than it is needed:
it is no parameter of a job, and no page, answer, log, audit event or exception text shows it.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.errors import InputError

LOST = failures.register(
    "stored_key_lost",
    gettext_noop(
        "The stored key cannot be read any more, because HYPAC_ENCRYPTION_KEYS or DJANGO_SECRET_KEY was "
        "changed, or is another one on this host. "
        "Enter it again, or have whoever runs the server put the old value back."
    ),
)


def encrypt(text: str) -> str:
    """What may be stored of `text`; another string each time. "" stays "". Raises InputError where it is no
    text that can be encoded."""
    try:
        return _fernet().encrypt(text.encode()).decode() if text else ""
    except UnicodeError:
        raise InputError(_("The key holds characters that cannot be stored."), where="api_key") from None


def decrypt(stored: str, *, where: str = "") -> str:
    """The text that `encrypt` was given. Raises InputError where no key fits any more."""
    if not stored:
        return ""
    try:
        return _fernet().decrypt(stored).decode()
    except (InvalidToken, ValueError):
        raise LOST.error(raised_as=InputError, where=where) from None


def reencrypt(stored: str, *, where: str = "") -> str:
    """`stored` under the first key. Raises InputError where no key fits any more."""
    return encrypt(decrypt(stored, where=where))


def _fernet() -> MultiFernet:
    return _fernet_of(tuple(settings.HYPAC_ENCRYPTION_KEYS), settings.SECRET_KEY)


@lru_cache(maxsize=4)
def _fernet_of(keys: tuple[str, ...], secret_key: str) -> MultiFernet:
    # RFC 5869; `info` keeps this key apart from all others that may ever be derived from the same secret.
    derived = HKDF(SHA256(), length=32, salt=None, info=b"hypac secrets at rest 1").derive(
        secret_key.encode()
    )
    return MultiFernet([*map(Fernet, keys), Fernet(base64.urlsafe_b64encode(derived))])
