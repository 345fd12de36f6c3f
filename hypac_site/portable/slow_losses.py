"""Slow losses that the check of a project file needs: computed here, as nothing in the file tells them, but
outside the transaction that stores it, which others may have to wait for.

The check looks them up. Of what is not known yet it notes the pairs; then all that was stored is taken back,
these are computed, and it begins again.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from annotation.errors import HypacError
from routing.common.computed_losses import key_of_pair
from routing.core.losses import LossCodeError, LossError, LossUnavailableError, make_loss
from routing.core.losses.looked_up import Lookup, Pair, looked_up
from routing.core.messages import CoreError
from routing.models import Run
from routing.runs.compute_losses import AT_ONCE, SIGNS, computed
from routing.runs.verification import not_to_be_had

IN_MEMORY = 8 * 2**20


class MissingLossesError(Exception):
    """Losses have to be computed before the file can be taken in."""


class SlowLosses:
    """What is known of them, by the hash of loss and pair. Texts, of which a mask's may be long, are kept on
    disk, and only until their losses are computed.
    """

    def __init__(self) -> None:
        self._known: dict[str, float | None] = {}
        self._missing: dict[str, None] = {}
        self._texts = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - one for all passes

    def lookup_for(self, run: Run) -> Lookup:
        def lookup(name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
            found = {}
            for pair in pairs:
                key = key_of_pair(name, params, pair)
                if key in self._known:
                    found[pair] = self._known[key]
                elif key not in self._missing:
                    self._missing[key] = None
                    self._texts.write(json.dumps([run.number, name, params, *pair]).encode() + b"\n")
            return found

        return lookup

    def require_all(self) -> None:
        """Raises MissingLossesError where one was asked for that is not known."""
        if self._missing:
            raise MissingLossesError

    def compute(self) -> None:
        """What is missing. Raises HypacError where a loss cannot be computed here now."""
        self._texts.seek(0)
        keys = iter(self._missing)
        lines = (json.loads(line) for line in self._texts)
        with looked_up(None):
            for (number, name, params), of_one in groupby(lines, key=lambda line: line[:3]):
                for pairs in _parts((label, answer) for *_asked, label, answer in of_one):
                    for value in _computed(number, name, params, pairs):
                        self._known[next(keys)] = value
        self._missing.clear()
        self._texts.seek(0)
        self._texts.truncate()

    def close(self) -> None:
        self._texts.close()


def _parts(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    part: list[Pair] = []
    signs = 0
    for pair in pairs:
        part.append(pair)
        signs += len(pair[0]) + len(pair[1])
        if len(part) == AT_ONCE or signs > SIGNS:
            yield part
            part, signs = [], 0
    if part:
        yield part


def _computed(number: int, name: str, params: str, pairs: Sequence[Pair]) -> Iterator[float | None]:
    """Of each pair the loss that run `number` asks for, None where it has none."""
    try:
        for found in computed(make_loss(name, json.loads(params)), pairs):
            if not isinstance(found, LossError):
                yield found
            elif (why := not_to_be_had(found)) is not None:
                raise why
            else:
                yield None
    except (LossUnavailableError, LossCodeError) as error:
        raise not_computed(number, name, error) from error


def not_computed(number: int, loss: str, error: CoreError) -> HypacError:
    return HypacError(
        f"Nothing was imported. The loss {loss!r} of run {number} cannot be computed here now, so that "
        f"nobody can tell whether what rests on it is true: {str(error).rstrip('.')}. Import the file again "
        "once it can be.",
        permanent=False,
    )
