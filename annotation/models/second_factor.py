"""What accounts log in with besides, or in place of, a password."""

from django.conf import settings
from django.db import models


class AuthenticatorApp(models.Model):
    """An app that shows another code every half a minute, computed from a secret that it shares with us."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="authenticator_app"
    )
    secret = models.TextField(help_text="Encrypted; in base 32.")
    last_step = models.BigIntegerField(
        default=0, help_text="The latest half minute whose code was used: none holds twice."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"Authenticator app of {self.user}"


class Passkey(models.Model):
    """A key pair of WebAuthn, of which we have the public half. Bytes are in URL-safe base64."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=100)
    credential_id = models.CharField(max_length=1400, unique=True)
    credential = models.TextField(help_text="Model of the authenticator, id and public key.")
    handle = models.CharField(
        max_length=100, help_text="What the account is called in authenticators: one of all its passkeys."
    )
    sign_count = models.BigIntegerField(
        default=0, help_text="How often it was used, as the authenticator says; 0: it does not count."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.user})"


class RecoveryCode(models.Model):
    """One that was not used yet, for whoever has lost app and passkeys."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes"
    )
    code_hash = models.CharField(max_length=64, help_text="SHA-256 of the account's number and the code.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "code_hash"], name="recovery_code_once")]

    def __str__(self) -> str:
        return f"Recovery code of {self.user}"
