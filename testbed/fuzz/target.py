"""One reader, and what may come of what it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from testbed.fuzz.mutations import mutated

Mutate = Callable[[Random, bytes, Sequence[bytes], Sequence[bytes]], bytes]


@dataclass(frozen=True)
class Target:
    """`read` returns, or raises one of `refusals`: all else is a fault, as is a failed assertion in it.

    `seeds` makes inputs that are whole, `words` are bytes that mean something to the reader. `seconds` are of
    the processor, `megabytes` what the process may grow by. `runs` are those of the short round of the tests.
    `guided`: lines that are reached are looked at, which takes a multiple of the time.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    refusals: tuple[type[Exception], ...] = ()
    words: Sequence[bytes] = ()
    mutate: Mutate = mutated
    seconds: float = 2.0
    megabytes: int = 256
    runs: int = 60
    guided: bool = True
