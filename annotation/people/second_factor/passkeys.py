"""Passkeys (WebAuthn): what browsers are asked, and whether what they answer holds.

Each is discoverable and asks its holder for a finger, a face or a PIN, so that it is both factors at once.
"""

import json
import logging
import secrets
import struct
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from fido2.rpid import verify_rp_id
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestationConveyancePreference,
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from annotation.common import once
from annotation.models import Passkey, User

log = logging.getLogger(__name__)

MOST_BYTES = 20_000  # of an answer
SECONDS = 300  # in which a challenge is to be answered, once
# What an answer that is none raises, wherever in it the fault is.
FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
    UnsupportedAlgorithm,
)
VERIFIED = UserVerificationRequirement.REQUIRED


@dataclass(frozen=True)
class Challenge:
    """`options` go to the browser, `state` stays here (JSON, both) until it has answered."""

    options: str
    state: dict[str, Any]


@dataclass(frozen=True)
class NewPasskey:
    """A new passkey that is not stored yet."""

    credential_id: str
    credential: str
    sign_count: int


def new_handle(user: User) -> str:
    """What the account is called in authenticators: as before, where it has passkeys; nothing that tells who
    it is."""
    first = Passkey.objects.filter(user=user).first()
    return first.handle if first else websafe_encode(secrets.token_bytes(32))


def begin_registration(request: HttpRequest, user: User, *, handle: str) -> Challenge:
    known = [_credential(passkey) for passkey in Passkey.objects.filter(user=user)]
    options, state = _server(request).register_begin(
        PublicKeyCredentialUserEntity(
            id=websafe_decode(handle), name=user.username, display_name=user.get_full_name() or user.username
        ),
        known,
        resident_key_requirement=ResidentKeyRequirement.REQUIRED,
        user_verification=VERIFIED,
    )
    return _challenge(options, state)


def finish_registration(request: HttpRequest, state: dict[str, Any], answer: str) -> NewPasskey | None:
    """What the browser made; None where the answer does not hold."""
    if not _is_open(state):
        return None
    try:
        data = _server(request).register_complete(state, _read(answer))
        credential = data.credential_data
        if credential is None:
            raise ValueError("no credential")
        return NewPasskey(websafe_encode(credential.credential_id), websafe_encode(credential), data.counter)
    except FAULTS as error:
        log.info("A passkey was not taken: %.200r", error)
        return None


def begin_authentication(request: HttpRequest, user: User | None = None) -> Challenge:
    """For one of theirs, or, where nobody is known yet, for any."""
    known = None if user is None else [_credential(one) for one in Passkey.objects.filter(user=user)]
    options, state = _server(request).authenticate_begin(known, user_verification=VERIFIED)
    return _challenge(options, state)


def finish_authentication(request: HttpRequest, state: dict[str, Any], answer: str) -> Passkey | None:
    """The passkey by which the browser answered; None where the answer does not hold. It is noted as used."""
    if not _is_open(state):
        return None
    try:
        told = _read(answer)
        response = AuthenticationResponse.from_dict(told)
        passkey = Passkey.objects.filter(credential_id=websafe_encode(response.raw_id)).first()
        if passkey is None:
            return None
        handle = response.response.user_handle
        if handle is not None and websafe_encode(handle) != passkey.handle:
            raise ValueError("the handle is that of another account")
        _server(request).authenticate_complete(state, [_credential(passkey)], told)
        count = response.response.authenticator_data.counter
    except FAULTS as error:
        log.info("What a passkey signed does not hold: %.200r", error)
        return None
    return passkey if _note_use(passkey, count) else None


def works_without_password(passkey: Passkey) -> bool:
    """Whether it lets in without a password. Whoever made an account for somebody could have made a passkey
    with it, before its holder chose the password: such a one is a second step, and no more.
    """
    user = passkey.user
    chosen = user.password_chosen_at
    return user.made_in is None or (chosen is not None and passkey.created_at >= chosen)


def _challenge(options: Any, state: dict[str, Any]) -> Challenge:
    until = int(time.time()) + SECONDS
    return Challenge(json.dumps(dict(options)["publicKey"]), {**state, "until": until})


def _is_open(state: dict[str, Any]) -> bool:
    """Whether what was asked may be answered now; from then on it is answered, well or not."""
    until = state.get("until", 0)
    if until < time.time():
        log.info("What a passkey signed came too late.")
        return False
    return once.use("passkey", state["challenge"], until=datetime.fromtimestamp(until + 1, UTC))


def _note_use(passkey: Passkey, count: int) -> bool:
    """False where the authenticator has counted further before: this one may be a copy of it."""
    if count <= passkey.sign_count and (count or passkey.sign_count):
        log.warning("Passkey %s was refused: it counts back, as a copy would.", passkey.pk)
        return False
    unused = Passkey.objects.filter(pk=passkey.pk, sign_count=passkey.sign_count)
    return unused.update(sign_count=count, last_used_at=timezone.now()) == 1


def _server(request: HttpRequest) -> Fido2Server:
    """For the host of this site: passkeys belong to it."""
    known = {request.get_host(), urlsplit(settings.HYPAC_ADDRESS).netloc}
    host = urlsplit(settings.HYPAC_ADDRESS or f"//{request.get_host()}").hostname or ""

    def is_ours(origin: str) -> bool:
        return urlsplit(origin).netloc in known and verify_rp_id(host, origin)

    server = Fido2Server(
        PublicKeyCredentialRpEntity(name="HyPAC", id=host),
        attestation=AttestationConveyancePreference.NONE,
        verify_origin=is_ours,
    )
    server.timeout = SECONDS * 1000  # type: ignore[assignment]  # of which its stubs know None alone
    return server


def _read(answer: str) -> dict[str, Any]:
    found = json.loads(answer) if len(answer) <= MOST_BYTES else None
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _credential(passkey: Passkey) -> AttestedCredentialData:
    return AttestedCredentialData(websafe_decode(passkey.credential))
