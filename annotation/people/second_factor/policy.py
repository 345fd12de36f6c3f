"""Who has a second step, and who has to."""

from django.conf import settings
from django.db.models import Q

from annotation.common.mail import LEADERS
from annotation.models import User


def has_second_factor(user: User) -> bool:
    either = Q(authenticator_app__isnull=False) | Q(passkeys__isnull=False)
    return User.objects.filter(either, pk=user.pk).exists()


def must_have_second_factor(user: User) -> bool:
    """Whether HYPAC_REQUIRE_SECOND_FACTOR asks it of this account. What those of a provider do there, it
    decides."""
    of = settings.HYPAC_REQUIRE_SECOND_FACTOR
    if of == "none" or user.sign_on is not None:
        return False
    if of == "everyone" or user.is_staff or user.is_superuser:
        return True
    leading = user.memberships.filter(is_active=True, role__in=LEADERS, project__deleting_at__isnull=True)
    return of == "managers" and leading.exists()
