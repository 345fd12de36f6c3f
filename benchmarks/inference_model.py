"""A language model of a realistic shape with random weights for benchmarks/inference.py: nothing is fetched.

    .venv-llm/bin/python benchmarks/inference_model.py FOLDER [--shape qwen3-4b]

`qwen3-4b` has the layers of Qwen3-4B (4.0 billion parameters, 8 GB); `tiny` is for trying the script. Speed
depends on the shape and not on the weights. Its tokens are bytes and fillers; what it writes means nothing.
"""

import argparse
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

END = "<|im_end|>"
TEMPLATE = (
    "{%- for message in messages -%}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{%- endfor -%}{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)
SHAPES = {
    "qwen3-4b": {
        "vocab_size": 151_936,
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
    "tiny": {
        "vocab_size": 512,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
    },
}


def make_tokenizer(size: int) -> PreTrainedTokenizerFast:
    """Bytes, then fillers up to `size` tokens, so that whatever is generated has a text."""
    own = ["<|im_start|>", END, "<|pad|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    fillers = [f"w{number}" for number in range(size - len(own))]
    tokenizer = Tokenizer(models.BPE(vocab={token: n for n, token in enumerate(own + fillers)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(own[:3])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token="<|pad|>", chat_template=TEMPLATE
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-4b")
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    tokenizer = make_tokenizer(shape["vocab_size"])
    config = Qwen3Config(
        **shape,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen3ForCausalLM(config)
    model.save_pretrained(options.folder)
    tokenizer.save_pretrained(options.folder)
    print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters in {options.folder}")


if __name__ == "__main__":
    main()
