"""Why jobs fail and certificates break: a code with parameters is what programs go by, the sentence is made
where people read it.

What is stored keeps the sentence in English, too: for what programs are told, and for a version that does not
know the code.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _, gettext_noop, override

from annotation import words as stored_words
from annotation.errors import HypacError, JobFailedError
from annotation.storable import storable

Params = Mapping[str, Any]
Part = dict[str, Any]
"""What one failure says, as a parameter of another: made by `part_of_error`, `Failure.part` or `term`; or
what `Words.params` stores."""

# The parameter that names the line, item or field of an error that has one.
WHERE = "where"

# The columns of a job that has not failed.
NO_ERROR: dict[str, Any] = {"error": "", "error_code": "", "error_params": {}}


def columns_of(error: HypacError) -> dict[str, Any]:
    """What a job that failed keeps of it."""
    params: Params = error.params
    if error.code and error.where:
        params = {**params, WHERE: stored_words.params_of(error.where) or error.where}
    words = in_english(error.code, params) or str(error)
    params = {name: stored_words.params_of(value) or value for name, value in params.items()}
    columns = {"error": words, "error_code": error.code, "error_params": params}
    return {name: storable(value) for name, value in columns.items()}


@dataclass(frozen=True)
class Failure:
    """A kind of failure. `sentence` makes of its parameters, in the language of the reader, what happened and
    what to do.
    """

    code: str
    sentence: Callable[[Params], str]

    def error(
        self,
        *,
        raised_as: type[HypacError] = JobFailedError,
        permanent: bool = True,
        where: str = "",
        **params: Any,
    ) -> HypacError:
        """What a handler raises. The parameters are plain values: they are stored as JSON."""
        words = self.sentence(params)
        return raised_as(words, where=where, permanent=permanent, code=self.code, params=params)

    def part(self, **params: Any) -> Part:
        """What it says, as a parameter of another failure."""
        with override("en"):
            return {"failure": self.code, "params": params, "words": self.sentence(params)}


def part_of_error(error: HypacError) -> Part:
    """What an error says, as a parameter of another failure."""
    words = in_english(error.code, error.params) or error.message
    return {"failure": error.code, "params": error.params, "words": words}


def clause(part: Part) -> Part:
    """A sentence as a part of another one: without its full stop."""
    return {**part, "clause": True}


def term(words: str) -> Part:
    """A few words, marked by gettext_noop, as a parameter of a failure."""
    return {"term": words}


def _filled_in(value: Any) -> Any:
    """A parameter in the language of the reader. A part that this version cannot tell stays in English."""
    if not isinstance(value, Mapping):
        return value
    if "template" in value:
        return stored_words.in_words(value, "")
    if "term" in value:
        return _(value["term"])
    if "failure" not in value:
        return value
    words = in_words(value["failure"], value["params"]) or value["words"]
    return words.rstrip(".") if value.get("clause") else words


def part_in_words(part: Part, english: str) -> str:
    """What was stored as a part, in the language of the reader; `english` where nothing but that was."""
    return str(_filled_in(part)) if part and english else english


_failures: dict[str, Failure] = {}
_further: list[Callable[[], object]] = []


def register(code: str, words: str | Callable[[Params], str]) -> Failure:
    """Make a failure known. `words` is a template that names its parameters, marked by gettext_noop, or makes
    the sentence of them.
    """
    sentence = words if callable(words) else lambda params: _(words) % params
    failure = Failure(
        code, lambda params: sentence({name: _filled_in(value) for name, value in params.items()})
    )
    return _failures.setdefault(code, failure)


def register_loader(load: Callable[[], object]) -> None:
    """Some failures are known only once `load` has imported their modules, which it does where one of them is
    looked for.
    """
    _further.append(load)


def in_words(code: str, params: Params) -> str:
    """The sentence, in the language of the reader; "" where this version cannot tell it."""
    if code and code not in _failures:
        for load in _further:
            load()
    try:
        words = _failures[code].sentence(params)
    except KeyError:
        return ""
    return f"{_filled_in(params[WHERE])}: {words}" if WHERE in params else words


def in_english(code: str, params: Params) -> str:
    with override("en"):
        return in_words(code, params)


def _out_of_memory(params: Params) -> str:
    if params["most"] is None:
        return _(
            "It needs more memory than its worker's machine gives. What it finished is kept. Make its input "
            "smaller, or have the operator give the machine more; then start it again."
        )
    words = _(
        "It needs more memory than a worker may take (%(most)s MB). What it finished is kept. Make its input "
        "smaller, or have the operator raise HYPAC_WORKER_MEMORY_MB; then start it again."
    )
    return words % {"most": f"{params['most']:,}"}


WORKERS_DIED = register(
    "workers_died",
    gettext_noop(
        "Its worker died %(attempts)s times. What it finished is kept; start it again once the cause is gone."
    ),
)
UNKNOWN_KIND = register(
    "unknown_kind",
    gettext_noop("No worker knows work of kind %(kind)r. It was of another version of this program."),
)
DATABASE = register("database", gettext_noop("The database could not be used: %(error)s"))
UNEXPECTED = register("unexpected", gettext_noop("Unexpected error: %(error)s"))
STAYED_BEHIND = register(
    "stayed_behind",
    gettext_noop("It failed on the server that the project came from. What was wrong there did not travel."),
)
OUT_OF_MEMORY = register("out_of_memory", _out_of_memory)
