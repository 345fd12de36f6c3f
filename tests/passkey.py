"""An authenticator in software: makes one passkey, and signs with it, as a browser would hand it on."""

import hashlib
import json
import secrets
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

UP, UV, AT = AuthenticatorData.FLAG.UP, AuthenticatorData.FLAG.UV, AuthenticatorData.FLAG.AT


class Authenticator:
    def __init__(self, *, origin: str = "https://testserver", verifies: bool = True) -> None:
        self.origin, self.verifies = origin, verifies
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = secrets.token_bytes(16)
        self.handle = b""
        self.count = 0

    def make(self, options: str) -> str:
        asked = json.loads(options)
        self.handle = websafe_decode(asked["user"]["id"])
        public = ES256.from_cryptography_key(self.key.public_key())
        credential = AttestedCredentialData.create(Aaguid.NONE, self.id, public)
        data = self._data(asked["rp"]["id"], credential)
        told = self._client(CollectedClientData.TYPE.CREATE, asked)
        made = AttestationObject.create("none", data, {})
        return self._answer(clientDataJSON=told, attestationObject=made)

    def show(self, options: str) -> str:
        asked = json.loads(options)
        self.count += 1
        data, told = self._data(asked["rpId"]), self._client(CollectedClientData.TYPE.GET, asked)
        signature = self.key.sign(data + hashlib.sha256(told).digest(), ec.ECDSA(SHA256()))
        return self._answer(
            clientDataJSON=told, authenticatorData=data, signature=signature, userHandle=self.handle
        )

    def _data(self, site: str, credential: AttestedCredentialData | None = None) -> AuthenticatorData:
        flags = UP | (UV if self.verifies else 0) | (AT if credential else 0)
        where = hashlib.sha256(site.encode()).digest()
        return AuthenticatorData.create(where, flags, self.count, credential or b"")

    def _client(self, does: str, asked: dict[str, Any]) -> bytes:
        return CollectedClientData.create(does, asked["challenge"], self.origin)

    def _answer(self, **response: bytes) -> str:
        name = websafe_encode(self.id)
        parts = {key: websafe_encode(value) for key, value in response.items()}
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": parts})
