"""What a person is told when something cannot be done: what happened, where, and what to do."""

from collections.abc import Mapping
from typing import Any, Self

from django.utils.translation import gettext as _


class HypacError(Exception):
    """Base of the errors that are shown to people as they are.

    `permanent` is False where trying again later can help. `where` names the line, item or field. `code` with
    `params`, plain values, is what programs go by, where they have to (annotation.failures).
    """

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        permanent: bool = True,
        code: str = "",
        params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.permanent = permanent
        self.code = code
        self.params = dict(params or {})
        # Where it stands in the body of a request to the API, if that is not `where` itself.
        self.path = where

    @classmethod
    def of(cls, error: "HypacError", *, where: str = "") -> Self:
        """The same failure as an error of this kind."""
        return cls(
            error.message, where=where, permanent=error.permanent, code=error.code, params=error.params
        )

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InputError(HypacError):
    """Something that a person or a file gave cannot be used."""


class Refusal(str):
    """Why something cannot be done, in a sentence, with its code; false where nothing stands against it."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, words: str = "", code: str = "") -> Self:
        made = super().__new__(cls, words)
        made.code = code
        return made


class ConflictError(HypacError):
    """The request was fine once, but things have moved on (a lease passed on, a run started twice).

    `code` is one of annotation.error_codes: by it programs tell conflicts apart.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        where: str = "",
        permanent: bool = True,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, where=where, permanent=permanent, code=code, params=params)


class UnderWayError(ConflictError):
    """The same work, called `title`, is under way; it can be asked for again once that has ended."""

    def __init__(self, title: str) -> None:
        words = _("%(known)s is already under way. Wait until it has finished, or cancel it.")
        super().__init__(words % {"known": title}, code="same_work_under_way")


class NotAllowedError(HypacError):
    """The person may not do this."""


class JobFailedError(HypacError):
    """A job cannot go on."""
