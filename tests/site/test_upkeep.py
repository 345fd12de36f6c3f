"""What is looked after every few seconds, by a worker or by `manage.py serve`: both forget what has ended."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import ApiToken, KeyedRequest
from annotation.services.tokens import make_token
from annotation.tasks import reconcile_jobs
from hypac_site import supervisor
from testbed.factories import make_user


def by_serve() -> None:
    supervisor.Supervisor(host="127.0.0.1", port=1).watch(0)


@pytest.mark.django_db
@pytest.mark.parametrize("look", [reconcile_jobs, by_serve])
def test_what_has_ended_is_forgotten(look: Callable[[], None], monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "close_old_connections", lambda: None)  # the test's transaction is on one
    user, long_ago = make_user(), timezone.now() - timedelta(days=800)
    token, _ = make_token(user=user, name="ended")
    make_token(user=user, name="holds")
    ApiToken.objects.filter(pk=token.pk).update(expiry=long_ago)
    for key, made in (("old", long_ago), ("new", timezone.now())):
        KeyedRequest.objects.create(user=user, key=key, address="POST /", created_at=made)
    look()
    assert list(ApiToken.objects.values_list("name", flat=True)) == ["holds"]
    assert list(KeyedRequest.objects.values_list("key", flat=True)) == ["new"]
