# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's tokenizer.json: small tokenizers, made by each family's rules, and the tokens of awkward texts.

Needs the package tokenizers beside torch (pip install tokenizers). The rules of a family are those of the tokenizer.json
that its models are published with.
"""

import importlib
import json

LLAMA3 = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"""
          r"""|\s+(?!\S)|\s+""")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

# What is awkward: joined emoji, marks, several scripts, spaces of all kinds, line ends, digits, cases.
SNIPPETS = [
    " the", "there ", "It's", "WE'LL", "i'D", "o'\u017f", "''ve", "\r\n", "\n\n", "\t", "    ", "  \n  ", "\u00a0", "\u3000",
    "\u2028", "\u0085", "\x0b\x0c", "\x1c", "\u200b", "\u200d", "\ufeff", "\u00ad", "12345", "3.14", "\u0663\u0664\u0665",
    "\u0967\u0968", "\u00bd\u00b2", "\u2167", "\U0001d7d8\U0001d7d9", "caf\u00e9", "cafe\u0301", "\u212b", "A\u030a", "\u1e9b\u0323",
    "q\u0307\u0323", "\ufb01n", "\u0130I", "\u03a3\u03c2", "\u01c5", "\uac00\u11a8", "\u1100\u1161", "\u6771\u4eac\u306f",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0627\u0644\u0639\u064e\u0631\u0628\u064a\u0629", "\u05e9\u05c1\u05dc\u05d5\u05dd",
    "\u0e44\u0e17\u0e22", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd",
    "\u2764\ufe0f", "\u20bf", "!!!", "...\r\n", "\u2014", "\u00ab \u00bb", "$%^&", "snake_case", "camelCase", "a-b", "\x00",
    "\x7f", "\u2581", "\u2581\u2581the", "<0x0A>", "<", "</s>", "<s>", "<|end|>", "<|end", "[MASK]", "<image>", "\ue000", "\ufffd",
]
# Ranges of characters that Unicode has had since version 5 at the latest.
BLOCKS = [
    [0x20, 0x7e], [0xa1, 0x17f], [0x300, 0x362], [0x391, 0x3a1], [0x3b1, 0x3ce], [0x410, 0x44f], [0x5d0, 0x5ea],
    [0x621, 0x63a], [0x64b, 0x655], [0x660, 0x669], [0x905, 0x939], [0xe01, 0xe3a], [0x1100, 0x1159], [0x1e00, 0x1e9b],
    [0x2000, 0x200f], [0x2070, 0x2071], [0x2153, 0x2182], [0x2190, 0x21ff], [0x3041, 0x3096], [0x30a1, 0x30fa],
    [0x4e00, 0x9fa5], [0xac00, 0xd7a3], [0xff01, 0xff5e], [0x1d400, 0x1d454], [0x20000, 0x2a6d6],
]
LONG_BYTES = 1 << 20


class Draws:
    """Numbers that a test draws again (tests/runtime/data/formats/awkward_text.h)."""

    def __init__(self):
        self.state = 1

    def next(self, below):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % below


def awkward_text(least_bytes):
    draws, parts, size = Draws(), [], 0
    while size < least_bytes:
        if draws.next(3) == 0:
            part = SNIPPETS[draws.next(len(SNIPPETS))]
        else:
            first, last = BLOCKS[draws.next(len(BLOCKS))]
            part = "".join(chr(first + draws.next(last - first + 1)) for _ in range(1 + draws.next(5)))
        if draws.next(4) == 0:
            part += " "
        parts.append(part)
        size += len(part.encode())
    return "".join(parts)


def digest(tokens):
    value = 0xcbf29ce484222325
    for token in tokens:
        value = (value ^ token) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def learned():
    return importlib.import_module("families.byte_pairs").LEARNED + SNIPPETS * 2


def learned_of_few():
    """Of few characters: the others are unknown, or bytes."""
    return importlib.import_module("families.byte_pairs").LEARNED + [text for text in SNIPPETS if text.isprintable()][::2]


def bpe(**rules):
    from tokenizers import Tokenizer, models
    return Tokenizer(models.BPE(**rules))


def train_bytes(tokenizer, special, size=420):
    from tokenizers import pre_tokenizers, trainers
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False, min_frequency=2, special_tokens=special)
    tokenizer.train_from_iterator(learned(), trainer)


def around(tokenizer, text):
    """A template of tokens around a text, "<s> $A </s>"."""
    from tokenizers import processors
    names = [name for name in text.split() if name != "$A"]
    return processors.TemplateProcessing(single=text, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names])


def gpt2():
    from tokenizers import decoders, pre_tokenizers, processors
    tokenizer = bpe()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    train_bytes(tokenizer, ["<|end|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def roberta():
    """GPT-2's with a space before the text, tokens around it, and a mask that takes the spaces before it."""
    from tokenizers import AddedToken, decoders, pre_tokenizers, processors
    tokenizer = bpe()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    train_bytes(tokenizer, ["<s>", "</s>"], 360)
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<image>", rstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return tokenizer


def split(pattern):
    from tokenizers import Regex, pre_tokenizers
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def llama3():
    from tokenizers import AddedToken, decoders, processors
    tokenizer = bpe(ignore_merges=True)
    tokenizer.pre_tokenizer = split(LLAMA3)
    tokenizer.decoder = decoders.ByteLevel()
    train_bytes(tokenizer, [])
    # A token that no merges lead to: only a word as a whole is that.
    state = json.loads(tokenizer.to_str())
    state["model"]["vocab"]["\u0120camel"] = len(state["model"]["vocab"])
    state["model"]["vocab"]["camel"] = len(state["model"]["vocab"])
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("<|end|>", normalized=False),
                                  AddedToken("<|end|><s>", normalized=False)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                    around(tokenizer, "<s> $A")])
    return tokenizer


def qwen2():
    from tokenizers import AddedToken, decoders, normalizers, processors
    tokenizer = bpe()
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split(QWEN2)
    tokenizer.decoder = decoders.ByteLevel()
    train_bytes(tokenizer, [])
    tokenizer.add_special_tokens([AddedToken("<|end|>", normalized=False)])
    tokenizer.add_tokens([AddedToken("cafe\u0301", normalized=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def train_characters(tokenizer):
    from tokenizers import trainers
    bytes_of = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=520, show_progress=False, min_frequency=2,
                                  special_tokens=["<unk>", "<s>", "</s>"] + bytes_of)
    tokenizer.train_from_iterator(learned_of_few(), trainer)
    # The bytes are tokens of the model alone: a text that spells them out does not mean them.
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in bytes_of]
    from tokenizers import Tokenizer
    return Tokenizer.from_str(json.dumps(state))


def llama2():
    from tokenizers import decoders, normalizers
    tokenizer = bpe(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer = train_characters(tokenizer)
    tokenizer.post_processor = around(tokenizer, "<s> $A")
    return tokenizer


def metaspace(scheme, cuts):
    from tokenizers import decoders, pre_tokenizers
    tokenizer = bpe(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=cuts)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme, split=cuts)
    return train_characters(tokenizer)


def unknown():
    """Characters that are no tokens become one unknown token, and digits stand alone."""
    from tokenizers import normalizers, pre_tokenizers, trainers
    tokenizer = bpe(unk_token="<unk>", fuse_unk=True)
    tokenizer.normalizer = normalizers.NFKD()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(True)])
    trainer = trainers.BpeTrainer(vocab_size=150, show_progress=False, special_tokens=["<unk>"])
    tokenizer.train_from_iterator(learned_of_few(), trainer)
    return tokenizer


def bert(lowercase):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
    # The trainer of word pieces orders them by chance.
    words = sorted({word for text in learned_of_few() for word in text.split()})
    letters = sorted({letter for word in words for letter in word if letter.isascii() or letter in "\u00e9\u6771\u0301"})
    parts = ["the", "mother", "brown", "quick", "end", "dog"] + [word[:4] for word in words if word.isascii()]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters), *parts,
              *("##" + part for part in parts if not part.startswith("##"))]
    vocab = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = around(tokenizer, "[CLS] $A [SEP]")
    return tokenizer


def cases():
    texts = {**importlib.import_module("families.byte_pairs").TEXTS,
             "awkward": awkward_text(2000), "specials": "<s> a</s>  [MASK] b<image>  c<|end|><s>\n<s></s>", "cut": "camel camels"}
    long = awkward_text(LONG_BYTES)
    makers = {"gpt2": gpt2, "roberta": roberta, "llama3": llama3, "qwen2": qwen2, "llama2": llama2,
              "metaspace first": lambda: metaspace("first", False), "metaspace always": lambda: metaspace("always", True),
              "unknown": unknown, "bert": lambda: bert(True), "bert cased": lambda: bert(False)}
    tokenizers = {}
    for name, make in makers.items():
        tokenizer = make()
        encoded = tokenizer.encode(long).ids
        tokenizers[name] = {
            "file": json.loads(tokenizer.to_str()),
            "tokens": {text_name: tokenizer.encode(text).ids for text_name, text in texts.items()},
            "long": {"count": len(encoded), "digest": digest(encoded)},
        }
    return {"texts": texts, "draws": {"snippets": SNIPPETS, "blocks": BLOCKS, "bytes": LONG_BYTES}, "tokenizers": tokenizers}
