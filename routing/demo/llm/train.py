"""Train both models from nothing, in minutes on one processor core: `python -m routing.demo.llm.train`.

The slow model first, the fast one from its weights: small as it is, it does not learn from nothing to
answer at once. Steps and seeds decide the outcome, not the clock; another processor or version of PyTorch
still rounds differently.
"""

import argparse
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from routing.demo.llm.questions import END_THINK, THINK, Sum, draw_sum, fast_solution, slow_solution

PAD, USER, ASSISTANT, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"
MAX_LENGTH = 128

# The models know sums and nothing else: what a system message says is left out, as they could make nothing
# of it.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' -%}"
    "{{- '" + USER + "' + message.content + '" + END + "' -}}"
    "{%- elif message.role == 'assistant' -%}"
    "{{- '" + ASSISTANT + "' + message.content + '" + END + "' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '" + ASSISTANT + "' -}}{%- endif -%}"
)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Of both models: a token for each byte, and five of its own. A byte-level BPE without a single merge,
    which is what other engines know how to read; no text is out of vocabulary.
    """
    own = [PAD, USER, ASSISTANT, END, THINK, END_THINK]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(own + alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([PAD, USER, ASSISTANT, END])
    tokenizer.add_tokens([THINK, END_THINK])  # shown in the text unless a server takes the reasoning out
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        model_max_length=MAX_LENGTH,
        clean_up_tokenization_spaces=False,
    )


MODELS = Path(__file__).parent / "models"
NO_LOSS = -100  # the mark of positions that Transformers leaves out of the loss


@dataclass(frozen=True)
class Course:
    """How one model is taught."""

    name: str
    solution: Callable[[Sum], str]
    steps: int
    peak_rate: float
    seed: int
    # The paper's sampling settings of the models that these two stand for: Qwen3-4B-Instruct-2507 and
    # -Thinking-2507.
    temperature: float
    top_p: float
    top_k: int = 20
    batch: int = 64
    warm_up: int = 50


SLOW = Course("slow", slow_solution, steps=1200, peak_rate=4e-3, seed=1, temperature=0.6, top_p=0.95)
FAST = Course("fast", fast_solution, steps=1500, peak_rate=3e-3, seed=2, temperature=0.7, top_p=0.8)
MUON_RATE = 0.02
# Texts are 30 tokens long: with the usual 10,000 most frequencies would hardly turn.
ROPE_BASE = 100.0


def make_model(tokenizer: PreTrainedTokenizerFast, *, seed: int) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=3,
            num_attention_heads=3,
            num_key_value_heads=3,
            head_dim=32,
            max_position_embeddings=MAX_LENGTH,
            tie_word_embeddings=True,
            initializer_range=0.05,
            use_cache=False,
            rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


def batches(course: Course, tokenizer: PreTrainedTokenizerFast) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless (tokens, targets), each batch x length; no held-out sum is among them. Only the solution is
    learnt.
    """
    rng = random.Random(course.seed)  # noqa: S311 - no secret, and the same seed gives the same lessons
    assistant = tokenizer.convert_tokens_to_ids(ASSISTANT)
    while True:
        texts: list[str] = []
        while len(texts) < course.batch:
            one = draw_sum(rng)
            if not one.held_out:
                texts.append(f"{USER}{one.question}{END}{ASSISTANT}{course.solution(one)}{END}")
        tokens = tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")["input_ids"]
        in_solution = (tokens == assistant).cumsum(1).bool() & (tokens != assistant)
        yield tokens, tokens.where(in_solution & (tokens != tokenizer.pad_token_id), NO_LOSS)


def teach(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, course: Course) -> None:
    """Muon for the weight matrices, AdamW for the rest; the rates rise in `warm_up` steps and fall along a
    cosine.
    """
    inner: list[torch.nn.Parameter] = []
    rest: list[torch.nn.Parameter] = []
    for name, weights in model.named_parameters():
        (inner if weights.ndim == 2 and "embed" not in name else rest).append(weights)
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(inner, lr=MUON_RATE, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(rest, lr=course.peak_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]

    def rate(step: int) -> float:
        progress = step / course.steps
        return min(1.0, (step + 1) / course.warm_up) * (1 + math.cos(math.pi * progress)) / 2

    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, rate) for optimizer in optimizers]
    model.train()
    began, lessons = time.monotonic(), batches(course, tokenizer)
    for step in range(1, course.steps + 1):
        tokens, targets = next(lessons)
        # Padding stands behind every text, where causal attention cannot see it: no mask is needed.
        loss = model(input_ids=tokens, labels=targets).loss
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
        if step % 100 == 0 or step == course.steps:
            print(
                f"{course.name}: step {step:,} of {course.steps:,}, loss {loss.item():.4f}, "
                f"{time.monotonic() - began:.0f} s",
                flush=True,
            )


def save(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, course: Course, folder: Path) -> None:
    """The folder that an inference engine loads; weights in half precision."""
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=course.temperature,
        top_p=course.top_p,
        top_k=course.top_k,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model.config.use_cache = True
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model.float()
    model.config.use_cache = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=MODELS, help="folder for the two models")
    output: Path = parser.parse_args().output
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, seed=SLOW.seed)
    print(f"{model.num_parameters():,} parameters")
    for course in (SLOW, FAST):
        teach(model, tokenizer, course)
        save(model, tokenizer, course, output / course.name)


if __name__ == "__main__":
    main()
