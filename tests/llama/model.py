"""The model of the test engine, written as a gguf file: it speaks by a table and is the same on every machine.

It is a Mamba of one block, because that reads a transcript in linear time and keeps no cache that grows with it;
the weights of the block are zero. So a logit is the bias of a token plus what the table says of the token before it:
the model says its sentences in free text, and writes a schema-valid call where the server's grammar forbids all
else; strings, numbers and lists end as soon as the grammar lets them.
Law: the margins are wide, so that at temperature 0 no rounding of any processor changes a word.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Final

import gguf
import numpy as np
from numpy.typing import NDArray

NAME: Final = "toolglot-tiny"
CONTEXT: Final = 1_048_576
"""In tokens, which are bytes, apart from the few words that the model says."""

TEMPLATE: Final = Path(__file__).with_name("template.jinja")
"""After Hermes, with no newline around a call. Where the model is to speak it ends with the mark of what to do:
call a tool (`ACT`: there are tools, and the user spoke last), think first (`MUSE`: the user's text says "think"),
or just answer (no mark: a tool spoke last, or there are no tools)."""

_START, _END, _ACT, _MUSE = b"<|im_start|>", b"<|im_end|>", b"<|act|>", b"<|muse|>"
_CALL, _CALLED, _THINK, _THOUGHT = b"<tool_call>", b"</tool_call>", b"<think>", b"</think>"
_CONTROL: Final = (_START, _END, _ACT, _MUSE)
_MARKUP: Final = (_CALL, _CALLED, _THINK, _THOUGHT)

_SAYS: Final[tuple[tuple[bytes, ...], ...]] = (
    (b"\n", b"It", b" is", b" 7", b" ", b"\xc2", b"\xb0", b"C", b" in", " Köln".encode()),
    (" Köln".encode(), b"\xf0", b"\x9f", b"\x8c", b"\xa7", _END),
    (_ACT, b"Let", b" me", b" look", b".", _CALL, b"{"),
    (_MUSE, _THINK, b"The", b" user", b" wants", b" the", b" weather", _THOUGHT, b"\n"),
    (b'"', b"K", b"\xc3", b"\xb6", b"l", b"n", b'"'),
    (b"}", _CALLED, _END),
)
"""What follows what, whenever the grammar allows it. A character of several bytes is several tokens."""

_FOLLOWS: Final = 24.0
_OTHERWISE: Final = {(b"\xa7", _CALL): 20.0, (_CALLED, _CALL): 23.5}
"""A call after the answer, where the grammar demands one. Another call after a call: never at temperature 0, and
two times in five at temperature 1."""

_BIAS: Final = {_END: 9, b'"': 8, b"}": 7, b"]": 6, b",": 4, b":": 4, b"{": 3, b"[": 3, b"7": 3, b"t": 2}
"""Which token is taken when the table says nothing or the grammar forbids what it says: that which ends something.
Within JSON that is first the end of a string."""
_UNWANTED: Final = -12.0

_WIDTH: Final = 64
_INNER, _STATE, _KERNEL, _RANK = 2 * _WIDTH, 1, 2, 1


def write_model(path: Path) -> None:
    """The model as a gguf file."""
    tokens = _tokens()
    writer = gguf.GGUFWriter(path, "mamba")
    _describe(writer, tokens)
    for name, tensor in _tensors(tokens).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tokens() -> list[bytes]:
    """Every byte, the words that the model says, and the marks."""
    words = dict.fromkeys(itertools.chain.from_iterable(_SAYS))
    whole = [word for word in words if len(word) > 1 and word not in _CONTROL + _MARKUP]
    return [bytes([byte]) for byte in range(256)] + whole + [*_CONTROL, *_MARKUP]


def _describe(writer: gguf.GGUFWriter, tokens: list[bytes]) -> None:
    writer.add_name(NAME)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(1)
    writer.add_ssm_conv_kernel(_KERNEL)
    writer.add_ssm_inner_size(_INNER)
    writer.add_ssm_state_size(_STATE)
    writer.add_ssm_time_step_rank(_RANK)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_sampling_temp(0.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([_spelled(token) for token in tokens])
    writer.add_token_types([_kind(token) for token in tokens])
    writer.add_token_merges(["a a"])
    writer.add_bos_token_id(tokens.index(_START))
    writer.add_eos_token_id(tokens.index(_END))
    writer.add_eot_token_id(tokens.index(_END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE.read_text("utf-8"))


def _kind(token: bytes) -> gguf.TokenType:
    if token in _CONTROL:
        return gguf.TokenType.CONTROL
    return gguf.TokenType.USER_DEFINED if token in _MARKUP else gguf.TokenType.NORMAL


def _spelled(token: bytes) -> str:
    """A token as a byte-level vocabulary names it: the bytes that do not print are moved to U+0100 and on."""
    if token in _CONTROL + _MARKUP:
        return token.decode()
    return "".join(_LETTERS[byte] for byte in token)


def _letters() -> dict[int, str]:
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + at) for at, byte in enumerate(hidden)}


_LETTERS: Final = _letters()


# --- weights ----------------------------------------------------------------------------------------


def _tensors(tokens: list[bytes]) -> dict[str, NDArray[np.float32]]:
    entry, output = _table(tokens)
    ones = np.ones(_WIDTH, np.float32)
    silent = {
        "ssm_in.weight": (2 * _INNER, _WIDTH),
        "ssm_conv1d.weight": (_INNER, _KERNEL),
        "ssm_conv1d.bias": (_INNER,),
        "ssm_x.weight": (_RANK + 2 * _STATE, _INNER),
        "ssm_dt.weight": (_INNER, _RANK),
        "ssm_dt.bias": (_INNER,),
        "ssm_a": (_INNER, _STATE),
        "ssm_d": (_INNER,),
        "ssm_out.weight": (_WIDTH, _INNER),
    }
    return {
        "token_embd.weight": entry,
        "output_norm.weight": ones,
        "output.weight": output,
        "blk.0.attn_norm.weight": ones,
        **{f"blk.0.{name}": np.zeros(shape, np.float32) for name, shape in silent.items()},
    }


def _table(tokens: list[bytes]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """How a token enters, and the logits that come of it.

    A token enters as a one in the first column, which carries the bias, and a one in the column of its own state;
    the second column is that of all tokens of which the table says nothing. So all are of one length, and the norm
    before the output is the same factor for all.
    """
    index_of = {token: at for at, token in enumerate(tokens)}
    pairs = [pair for text in _SAYS for pair in itertools.pairwise(text)]
    states = {token: at for at, token in enumerate(dict.fromkeys(before for before, _ in pairs), start=2)}
    entry = np.zeros((len(tokens), _WIDTH), np.float32)
    output = np.zeros((len(tokens), _WIDTH), np.float32)
    entry[:, 0] = 1
    for token, at in index_of.items():
        entry[at, states.get(token, 1)] = 1
        output[at, 0] = _bias(token)
    for before, after in pairs:
        output[index_of[after], states[before]] = _FOLLOWS - _bias(after)
    for (before, after), logit in _OTHERWISE.items():
        output[index_of[after], states[before]] = logit - _bias(after)
    return entry, output / np.float32(np.sqrt(_WIDTH / 2))


def _bias(token: bytes) -> float:
    if token in _BIAS:
        return _BIAS[token]
    # No two letters are alike, so that which of two names is chosen does not hang on the order of a sort.
    return -token[0] / 100 if token.isalnum() and len(token) == 1 else _UNWANTED
