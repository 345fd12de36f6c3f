"""Why a file cannot be read: said in the language of whoever looks at it, and of whoever looks at its job."""

from typing import Any

from django.utils.translation import gettext as _

from annotation import failures
from annotation.errors import InputError
from annotation.words import Words

# Formats differ in what can be wrong with a file, and no program goes by that: it is a parameter, too.
REFUSED = failures.register("import_refused", lambda params: _(params["words"]) % params)


def said_by(error: Exception) -> str:
    """What an error says, to be stored."""
    if not isinstance(error, InputError) or error.code != REFUSED.code:
        return error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    named = {name: value for name, value in error.params.items() if name != "words"}
    return Words(error.params["words"], **named)


def fault(
    words: str, *, where: str = "", raised_as: type[InputError] = InputError, **params: Any
) -> InputError:
    """An error to raise. `words` is a template that names the other parameters, marked by gettext_noop."""
    plain = {
        name: value if isinstance(value, int | float | Words) else str(value)
        for name, value in params.items()
    }
    told = {**plain, "words": words}
    return raised_as(REFUSED.sentence(told), where=where, code=REFUSED.code, params=told)
