"""Run by the interpreter of .venv-llm: the `vllm` backend on questions from standard input; answers as JSON.

The input is {"models": FOLDER, "passes": [{"params": ..., "questions": [...]}, ...]}.
"""

import gc
import json
import os
import sys
from typing import Any


def main() -> None:
    asked = json.load(sys.stdin)
    os.environ["HYPAC_VLLM_MODELS"] = asked["models"]
    os.environ["DJANGO_SETTINGS_MODULE"] = "hypac_site.settings"
    # What an engine prints on standard output is none of the answers.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import django

    django.setup()
    found = [answers(**one) for one in asked["passes"]]
    results.write(json.dumps([*found, {"bytes_left": bytes_left()}]))
    results.close()


def bytes_left() -> int:
    """What is still held of the weights of all models once their engines are closed."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    from routing.sources.backends.vllm import engine

    engine.close_current()
    gc.unfreeze()
    gc.collect()
    weights = (one for one in gc.get_objects() if isinstance(one, torch.nn.Parameter))
    # What a compiler followed the model with has shapes and no memory.
    real = [one for one in weights if not isinstance(one, FakeTensor)]
    return sum(one.numel() * one.element_size() for one in real)


def answers(*, params: dict[str, Any], questions: list[str], task: str = "number") -> dict[str, Any]:
    from annotation.models import Item
    from routing.sources.backends import Prompt, SourceContext, TaskSpec, open_backend

    context = SourceContext(TaskSpec(task), Prompt("{{ text }}"))
    backend = open_backend("vllm", params, context)
    items = [Item(pk=number, external_id=str(number), text=text) for number, text in enumerate(questions)]
    found: dict[int, dict[str, Any]] = {}
    groups = most = taken = 0

    def handed_out() -> Any:
        nonlocal taken
        for item in items:
            taken += 1
            yield item

    for group in backend.predict(handed_out()):
        groups += 1
        most = max(most, taken - len(found))
        found |= {item.pk: vars(answer) | {"cost": None} for item, answer in group}
    return {"answers": [found[n] for n in range(len(items))], "groups": groups, "most_in_flight": most}


if __name__ == "__main__":
    main()
