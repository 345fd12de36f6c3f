"""Looking for words in every table there is."""

from django.apps import apps
from django.db import models


def told_anywhere(*secrets: str) -> set[str]:
    """Columns, as Model.column, of any table in which one of these stands, whatever its case."""
    found = set()
    for model in apps.get_models(include_auto_created=True):
        texts = [
            field.attname
            for field in model._meta.concrete_fields
            if isinstance(field, models.CharField | models.TextField | models.JSONField | models.BinaryField)
        ]
        for row in model._default_manager.values(*texts) if texts else ():
            found |= {
                f"{model.__name__}.{name}"
                for name, value in row.items()
                if any(secret.casefold() in str(value).casefold() for secret in secrets)
            }
    return found
