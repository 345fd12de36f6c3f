"""What is refused of a prompt, in words, before a model is asked with it."""

from django.utils.translation import gettext as _

from annotation.errors import InputError
from routing.sources.prompts.placeholders import (
    OF_ITEM,
    OF_PROJECT,
    column_of,
    count_of,
    item_fields,
    names_in,
    placeholders,
)
from routing.sources.prompts.reading import read_answer
from routing.sources.prompts.render import example_fields
from routing.sources.source_context import Example, Prompt, TaskSpec

MAX_CHARACTERS = 50_000
"""Of a system message or a template; what is put in for placeholders comes on top."""
MAX_EXAMPLES = 50
MAX_PLACEHOLDERS = 100
"""Of a template or a system message: each may stand for a million characters."""
_SHOWN = 12


def check_prompt(prompt: Prompt, spec: TaskSpec) -> None:
    """Raise InputError, its `where` one of system, template, examples, where the prompt cannot be used."""
    known = placeholders(spec)
    for where, text in (("system", prompt.system), ("template", prompt.template)):
        if len(text) > MAX_CHARACTERS:
            raise InputError(
                _("It has more than %(max_characters)s characters.")
                % {"max_characters": f"{MAX_CHARACTERS:,}"},
                where=where,
            )
        if count_of(text) > MAX_PLACEHOLDERS:
            raise InputError(
                _("It uses more than %(most)s placeholders.") % {"most": MAX_PLACEHOLDERS}, where=where
            )
        if "\0" in text:
            raise InputError(_("It holds a character (NUL) that cannot be stored."), where=where)
    if not prompt.template.strip():
        raise InputError(_("Write what the model is to be asked."), where="template")
    for name in names_in(prompt.template):
        if not _is_known(name, known, spec):
            raise InputError(
                _("There is no placeholder %(name)r; there are %(known)s.")
                % {"name": name, "known": _listed(known)},
                where="template",
            )
    for name in names_in(prompt.system):
        if name not in OF_PROJECT or name not in known:
            refusal = _("is filled in item by item") if _is_known(name, known, spec) else _("is none")
            allowed = [entry for entry in OF_PROJECT if entry in known]
            raise InputError(
                _("The placeholder %(name)r %(refusal)s; a system message may hold %(names)s.")
                % {"name": name, "refusal": refusal, "names": ", ".join(allowed)},
                where="system",
            )
    fields = item_fields(prompt.template)
    if not fields:
        raise InputError(
            _("Nothing of the item is in it, so all would be asked the same; put in {{ text }} or a column."),
            where="template",
        )
    if len(prompt.examples) > MAX_EXAMPLES:
        raise InputError(
            _("There are more than %(max_examples)s examples.") % {"max_examples": MAX_EXAMPLES},
            where="examples",
        )
    for number, example in enumerate(prompt.examples, 1):
        _check_example(number, example, fields, spec)


def _check_example(number: int, example: Example, fields: list[str], spec: TaskSpec) -> None:
    given = example_fields(example)
    values = {name: given.get("text" if name == "text" else f"column:{column_of(name)}") for name in fields}
    for name, value in values.items():
        if not value:
            raise InputError(
                _("Example %(number)s lacks the field %(name)r.") % {"number": number, "name": name},
                where="examples",
            )
    if any(len(value) > MAX_CHARACTERS for value in (*given.values(), example.answer)):
        raise InputError(
            _("Example %(number)s is longer than %(max_characters)s characters.")
            % {"number": number, "max_characters": f"{MAX_CHARACTERS:,}"},
            where="examples",
        )
    if not example.answer.strip():
        raise InputError(_("Example %(number)s has no answer.") % {"number": number}, where="examples")
    reading = read_answer(example.answer, spec)
    if reading.value is None:
        raise InputError(
            _("The answer of example %(number)s would not be read as one: %(reason)s.")
            % {"number": number, "reason": reading.reason},
            where="examples",
        )


def _is_known(name: str, known: dict[str, str], spec: TaskSpec) -> bool:
    if name in known:
        return True
    return name not in OF_ITEM and name not in OF_PROJECT and column_of(name) in spec.columns


def _listed(known: dict[str, str]) -> str:
    names = list(known)
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
