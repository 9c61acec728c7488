"""Makes a language model of a few kilobytes that a real llama-server loads; a program of its own, beside the package.

It knows nothing. Whatever was said, it prefers the same tokens in the same order: the end, then what closes JSON, then
the rest, white space last. A server that lets only tokens through that fit a JSON schema so gets the shortest answer
that does; where there is no schema, the token that ends the prompt leads to "ok". Run it with the packages `gguf` and
`numpy`, which Bailiwick itself does not need:  python tiny_model.py FILE
"""

from __future__ import annotations

import string
import sys
from pathlib import Path
from typing import Any

NAME = "tiny"
WIDTH = 32
CONTEXT = 8192
UNKNOWN, BEGIN, END, ANSWER = "<unk>", "<s>", "</s>", "<|answer|>"
SPACE = "\u2581"
"""How a tokenizer of this kind writes a space."""
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|answer|>{% endif %}"
)
PREFERRED = (END, '"', "x", "}", "]", ",", ":", "0", "1", "{", "[", *string.ascii_lowercase, *string.digits)
STEP = 4.0
"""Between one preferred token and the next, in logits: far enough that chance has no say at any usual temperature."""
LEADS = {ANSWER: "o", "o": "k", "{": "}", "[": "]"}
"""What follows a token before anything that is preferred."""


def vocabulary() -> list[str]:
    """Every token in its place: the special ones, one for each byte, one for each character a person types."""
    typed = map(chr, range(0x21, 0x7F))
    return [UNKNOWN, BEGIN, END, ANSWER, *(f"<0x{byte:02X}>" for byte in range(256)), SPACE, *typed]


def preference(token: str) -> float:
    """The logit of a token where nothing leads to it."""
    return -STEP * (PREFERRED.index(token) if token in PREFERRED else len(PREFERRED))


def make(path: Path) -> None:
    """Write the model to `path`."""
    import gguf  # type: ignore[import-not-found]

    writer = gguf.GGUFWriter(path, "llama")
    _describe(writer)
    _add_tokens(writer, gguf.TokenType)
    _add_tensors(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any) -> None:
    writer.add_name(NAME)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(WIDTH)
    writer.add_block_count(1)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(vocabulary()))


def _add_tokens(writer: Any, kinds: Any) -> None:
    tokens = vocabulary()
    special = {UNKNOWN: kinds.UNKNOWN, BEGIN: kinds.CONTROL, END: kinds.CONTROL, ANSWER: kinds.CONTROL}
    types = [special.get(token, kinds.BYTE if token.startswith("<0x") else kinds.NORMAL) for token in tokens]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_unk_token_id(tokens.index(UNKNOWN))
    writer.add_bos_token_id(tokens.index(BEGIN))
    writer.add_eos_token_id(tokens.index(END))
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)


def _add_tensors(writer: Any) -> None:
    """Add a block that changes nothing, so the last token alone decides: one dimension for any token, one per lead."""
    import numpy as np  # type: ignore[import-not-found]

    tokens = vocabulary()
    inward = np.zeros((len(tokens), WIDTH), np.float32)
    outward = np.zeros((len(tokens), WIDTH), np.float32)
    inward[:, 0] = 1.0
    outward[:, 0] = [preference(token) for token in tokens]
    for dimension, (token, then) in enumerate(LEADS.items(), start=1):
        inward[tokens.index(token), dimension] = 1.0
        outward[tokens.index(then), dimension] = 2 * STEP * len(PREFERRED)
    writer.add_tensor("token_embd.weight", inward)
    writer.add_tensor("output.weight", outward)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for part in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{part}.weight", np.ones(WIDTH, np.float32))
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{part}.weight", np.zeros((WIDTH, WIDTH), np.float32))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
