"""A provider by which people log in, for the tests that ask for it."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from tests.openid_provider import CLIENT, OpenIDProvider, openid_provider


@pytest.fixture(scope="module")
def running() -> Iterator[OpenIDProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
def provider(
    request: pytest.FixtureRequest, running: OpenIDProvider, settings: LazySettings
) -> OpenIDProvider:
    """The site lets in by it. It knows whom the module names in KNOWN, by sub, with their claims."""
    settings.HYPAC_OIDC_ISSUER, settings.HYPAC_OIDC_CLIENT_ID = running.issuer, CLIENT
    settings.HYPAC_OIDC_CLIENT_SECRET, settings.HYPAC_OIDC_NAME = "s3cret", "the lab"
    for sub, claims in request.module.KNOWN.items():
        running.knows(sub, **claims)
    return running
