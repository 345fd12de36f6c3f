"""The tokenizer of both models: a token for each byte, and five of its own.

A byte-level BPE without a single merge, which is what other engines know how to read; no text is out of
vocabulary.
"""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from routing.demo.llm.solutions import END_THINK, THINK

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
