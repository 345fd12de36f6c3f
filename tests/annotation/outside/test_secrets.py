"""Secrets at rest: what is stored opens with the keys of the server, and with nothing else."""

import traceback

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from annotation.errors import InputError
from annotation.outside.secrets import decrypt, encrypt, reencrypt
from hypac_site import environment

SECRET = "sk-Zürich-7f3a"
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def test_what_is_stored_opens_again_and_does_not_hold_the_text(settings):
    for keys in ([], [NEW], [NEW, OLD]):
        settings.HYPAC_ENCRYPTION_KEYS = keys
        stored = encrypt(SECRET)
        assert SECRET not in stored
        assert stored != encrypt(SECRET)
        assert decrypt(stored) == SECRET


def test_nothing_stays_nothing():
    assert encrypt("") == "" == decrypt("")


def test_the_first_key_encrypts_and_an_older_one_still_opens(settings):
    settings.HYPAC_ENCRYPTION_KEYS = [OLD]
    stored = encrypt(SECRET)
    settings.HYPAC_ENCRYPTION_KEYS = [NEW, OLD]
    assert decrypt(stored) == SECRET
    anew = reencrypt(stored)
    settings.HYPAC_ENCRYPTION_KEYS = [NEW]
    assert decrypt(anew) == SECRET
    with pytest.raises(InputError):
        decrypt(stored)


def test_keys_may_be_set_later_without_losing_what_the_secret_key_encrypted(settings):
    stored = encrypt(SECRET)
    settings.HYPAC_ENCRYPTION_KEYS = [NEW]
    assert decrypt(stored) == SECRET


def test_another_secret_key_opens_nothing(settings):
    stored = encrypt(SECRET)
    settings.SECRET_KEY = "another secret key of the site"
    with pytest.raises(InputError, match="cannot be read any more") as caught:
        decrypt(stored, where="api_key")
    assert caught.value.where == "api_key"


@pytest.mark.parametrize("stored", ["sk-plain", "gAAAAA", "ü", "x" * 200])
def test_what_was_never_encrypted_is_refused_and_not_repeated(stored):
    with pytest.raises(InputError, match="cannot be read any more") as caught:
        decrypt(stored)
    assert stored not in "".join(traceback.format_exception(caught.value))


def test_a_changed_text_is_refused():
    stored = encrypt(SECRET)
    middle = len(stored) // 2
    with pytest.raises(InputError):
        decrypt(stored[:middle] + ("A" if stored[middle] != "A" else "B") + stored[middle + 1 :])


def test_half_a_character_cannot_be_stored_and_is_not_repeated():
    with pytest.raises(InputError, match="cannot be stored") as caught:
        encrypt("sk-\ud800")
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(
    "value", ["short", OLD[:-1], f"{OLD},x", f"{OLD} {NEW}"], ids=["short", "cut", "one of two", "space"]
)
def test_a_key_of_the_wrong_form_stops_the_start_and_is_not_repeated(monkeypatch, value):
    monkeypatch.setenv("HYPAC_ENCRYPTION_KEYS", value)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_ENCRYPTION_KEYS: key") as caught:
        environment.encryption_keys("HYPAC_ENCRYPTION_KEYS")
    assert OLD[:10] not in str(caught.value)


def test_keys_are_read_in_their_order(monkeypatch):
    monkeypatch.setenv("HYPAC_ENCRYPTION_KEYS", f" {NEW} , {OLD}")
    assert environment.encryption_keys("HYPAC_ENCRYPTION_KEYS") == [NEW, OLD]
