"""Encrypting the stored keys of sources anew, after the keys of the server were changed."""

from dataclasses import dataclass

from annotation.errors import InputError
from annotation.secrets import encrypt_anew
from routing.models import Source


@dataclass(frozen=True)
class Rotation:
    """`lost` are "project/source" whose key no longer opens; it is left as it was."""

    rotated: int
    lost: tuple[str, ...]


def rotate_stored_keys() -> Rotation:
    """Each stored key under the first key of the server. May run beside everything else, and again."""
    rotated, lost = 0, []
    for source in Source.objects.exclude(api_key="").select_related("project").order_by("pk").iterator():
        try:
            anew = encrypt_anew(source.api_key)
        except InputError:
            lost.append(f"{source.project.slug}/{source.name}")
            continue
        # Not over a key that somebody entered in the meantime, which is under the first key already.
        rotated += Source.objects.filter(pk=source.pk, api_key=source.api_key).update(api_key=anew)
    return Rotation(rotated, tuple(lost))
