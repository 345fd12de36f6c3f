"""What is sent to a model."""

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
