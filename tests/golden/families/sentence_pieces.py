# SPDX-License-Identifier: Apache-2.0
"""SentencePiece models: small ones, made by its trainer, and the tokens that its library encodes.

Needs the packages sentencepiece and protobuf beside torch (pip install sentencepiece protobuf).
"""

import base64
import importlib
import io
import os
import tempfile

# A small map of characters, as those of NFKC are of 200 KB: folds, compositions, spaces, and what is left out.
RULES = ([(f"{0xff21 + i:X}", f"{0x41 + i:X}") for i in range(26)] +
         [("41 30A", "C5"), ("65 301", "E9"), ("212B", "C5"), ("BD", "31 2044 32"), ("3000", "20"), ("A0", "20"), ("9", "20"),
          ("A", "20"), ("D", "20"), ("AD", ""), ("200B", ""), ("FB01", "66 69"), ("2026", "2E 2E 2E")])


def trained(name, texts, **options):
    import sentencepiece
    with tempfile.TemporaryDirectory() as folder:
        if options.pop("maps", False):
            path = os.path.join(folder, "rules.tsv")
            with open(path, "w") as file:
                file.writelines(f"{before}\t{after}\n" for before, after in RULES)
            options["normalization_rule_tsv"] = path
        else:
            options["normalization_rule_name"] = "identity"
        writer = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=writer, num_threads=1, minloglevel=2, hard_vocab_limit=False,
            **options)
    model = _without_paths(writer.getvalue())
    return _with_unused(model) if name == "bpe" else model


def _without_paths(model):
    from sentencepiece import sentencepiece_model_pb2
    message = sentencepiece_model_pb2.ModelProto.FromString(model)
    message.normalizer_spec.normalization_rule_tsv = ""
    return message.SerializeToString()


def _with_unused(model):
    """Makes two joined pieces ones that only lead to others."""
    from sentencepiece import sentencepiece_model_pb2
    message = sentencepiece_model_pb2.ModelProto.FromString(model)
    joined = [piece for piece in message.pieces if piece.type == 1 and len(piece.piece) > 1]
    for piece in joined[0], joined[8]:
        piece.type = 5
    return message.SerializeToString()


def cases():
    import sentencepiece
    theirs = importlib.import_module("families.tokenizers")
    texts = {**importlib.import_module("families.byte_pairs").TEXTS, "awkward": theirs.awkward_text(2000),
             "symbols of the user": " <image>the<image> snake_case  snakes", "folds": "ＡＢＣ caf\u0065\u0301 ½ A\u030a\u3000 \u00ad…"}
    learned = [text for text in theirs.learned() if text.strip() and "\u2581" not in text and "\x00" not in text]
    models = {
        "unigram": dict(model_type="unigram", vocab_size=260, maps=True),
        "unigram bytes": dict(model_type="unigram", vocab_size=520, byte_fallback=True, user_defined_symbols=["<image>", "snake"],
                              character_coverage=0.98, remove_extra_whitespaces=False),
        "bpe": dict(model_type="bpe", vocab_size=520, byte_fallback=True, user_defined_symbols=["<image>", "snake"],
                    character_coverage=0.98, remove_extra_whitespaces=False, split_digits=True),
        "bpe maps": dict(model_type="bpe", vocab_size=260, maps=True, character_coverage=0.98, add_dummy_prefix=False),
        "suffixes": dict(model_type="unigram", vocab_size=260, maps=True, treat_whitespace_as_suffix=True),
    }
    long = theirs.awkward_text(theirs.LONG_BYTES)
    stored = {}
    for name, options in models.items():
        model = trained(name, learned, **options)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        encoded = processor.encode(long)
        stored[name] = {"model": base64.b16encode(model).decode(),
                        "tokens": {text_name: processor.encode(text) for text_name, text in texts.items()},
                        "decoded": processor.decode(processor.encode("the mother: \u6771\u4eac \U0001f9ff")),
                        "long": {"count": len(encoded), "digest": theirs.digest(encoded)}}
    return {"texts": texts, "models": stored}
