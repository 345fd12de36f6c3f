"""What is sent to a model, and what was read from its answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Messages:
    """One question as a chat. `turns` are solved examples, each what was asked and what the answer was."""

    user: str
    system: str = ""
    turns: tuple[tuple[str, str], ...] = ()

    def as_chat(self) -> list[dict[str, str]]:
        """The messages in the form that chat completions take, the question last."""
        chat = [{"role": "system", "content": self.system}] if self.system else []
        for asked, answered in self.turns:
            chat += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        return [*chat, {"role": "user", "content": self.user}]


@dataclass(frozen=True)
class Reading:
    """`value` is the key of a choice, a list of keys, a decimal or a text; None where the answer cannot be
    used, and `reason` then says why in a few words.
    """

    value: str | list[str] | None
    reason: str = ""
