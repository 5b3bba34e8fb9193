# SPDX-License-Identifier: Apache-2.0
"""GPT-2's byte-level encoding: a small vocabulary, and the pieces and tokens of texts.

Needs the packages tokenizers and regex beside torch (pip install tokenizers regex).
"""

import json

# GPT-2's cuts between pieces (its encoder.py).
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

LEARNED = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind. It's what they've done before; we'll see.",
    "In 1999 there were 12,345 of them; in 2024 only 678. That's 3.14159 less than we'd thought, they're told.",
    "Zażółć gęślą jaźń. Der Fluß fließt über die Brücke. Où est-ce que l'été s'en va ? 東京は日本の首都です。",
    "    def f(x):\n        return x + 1\n\n\n    # the end of the function\n",
    "there and then, them and they: the theme of the thesis is thermal. another mother, other brothers together.",
] * 3

TEXTS = {
    "words": "The quick brown fox thinks the theory is there.",
    "contractions": "It's they're I've I'm we'll he'd can't 's 'S it'S o'clock ''ll '",
    "numbers": "1999 12,345.678 x2y ²³ ½ Ⅷ ٣٤ a1b2 1st",
    "spaces": " a  b   c \t d\n\n  e \n f   ",
    "only spaces": "     ",
    "line ends": "one\r\ntwo\n\nthree\n",
    "wide spaces": "a\u00a0b\u3000 c\u2028d\u0085e \u00a0 f\u180eg\u200bh\x1ci",
    "scripts": "Zażółć gęślą jaźń — 東京は首都。 Привет, мир! שלום हिन्दी ไทย",
    "marks": "e\u0301 a\u0308o \u0901\u0902 \u20dd",
    "symbols": "!!! ...--- @#$%^&*() <tag attr=\"v\"> {[(x)]} ~~ ₿ ™ 😀😀 👩‍👩‍👧 🇩🇪",
    "code": "    def f(x):\n\treturn x+1  # comment\n",
    "repeated": "aaaaaaaaaaaaaaaa thethethethe  ababababab 0000000",
    "astral letters": "𝒳𝔸 𐍈 𠜎𠜱 𝟘𝟙",
    "controls": "\x00\x01 \x7f a\x0bb\x0cc",
    "end of text": "one<|endoftext|>two <|endoftext|>\n<|endoftext",
    "empty": "",
}


def cases():
    import regex
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=520, initial_alphabet=alphabet, show_progress=False, min_frequency=2)
    tokenizer.train_from_iterator(LEARNED, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    vocab = dict(sorted(model["vocab"].items(), key=lambda item: item[1]))
    vocab["<|endoftext|>"] = len(vocab)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    assert tokenizer.token_to_id("<|endoftext|>") == vocab["<|endoftext|>"]

    texts = {}
    for name, text in TEXTS.items():
        tokens = tokenizer.encode(text).ids
        assert tokenizer.decode(tokens, skip_special_tokens=False) == text, name
        texts[name] = {"text": text, "pieces": regex.findall(PATTERN, text), "tokens": tokens}
    return {"vocabulary": {"vocab": vocab, "merges": merges}, "texts": texts}
