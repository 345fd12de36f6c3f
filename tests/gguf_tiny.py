"""Writes one of the two tiny models as a GGUF file, the form that llama.cpp reads.

    PYTHON tests/gguf_tiny.py routing/demo/llm/models/fast FILE

Run by an interpreter that has the packages gguf and safetensors; it needs nothing of the application. The
weights become float32, so that answers differ from those of other engines by rounding alone.
"""

import json
import sys
from pathlib import Path
from typing import Any

import gguf
from safetensors.numpy import load_file

ARCHITECTURE = "qwen3"


def main(model: Path, file: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    if config["model_type"] != ARCHITECTURE or not config["tie_word_embeddings"]:
        sys.exit(f"{model} is no {ARCHITECTURE} model with tied embeddings")
    writer = gguf.GGUFWriter(file, ARCHITECTURE)
    _sizes(writer, config)
    _tokenizer(writer, model, config)
    _weights(writer, model, config)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _sizes(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def _tokenizer(writer: gguf.GGUFWriter, model: Path, config: dict[str, Any]) -> None:
    described = json.loads((model / "tokenizer.json").read_text())
    added = {token["content"]: token["special"] for token in described["added_tokens"]}
    kinds = {None: gguf.TokenType.NORMAL, True: gguf.TokenType.CONTROL, False: gguf.TokenType.USER_DEFINED}
    vocabulary = described["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds[added.get(token)] for token in tokens])
    # llama.cpp wants a merge. Of this one the result is no token, so that it falls back to single bytes.
    writer.add_token_merges([f"{tokens[-2]} {tokens[-1]}"])
    # The server tells no probability of the token that begins texts. Here none does, and llama.cpp would take
    # one of the bytes for it.
    writer.add_bos_token_id(config["pad_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)
    writer.add_chat_template((model / "chat_template.jinja").read_text())


def _weights(writer: gguf.GGUFWriter, model: Path, config: dict[str, Any]) -> None:
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config["num_hidden_layers"])
    for name, weights in load_file(model / "model.safetensors").items():
        ours = names.get_name(name, try_suffixes=(".weight",))
        if ours is None:
            sys.exit(f"{name}: GGUF has no such weights in a {ARCHITECTURE} model")
        writer.add_tensor(ours, weights.astype("float32"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
