# SPDX-License-Identifier: Apache-2.0
"""BERT of Hugging Face's transformers, with all gradients. Parameters have their names and layout.

Needs the package transformers beside torch."""

import torch
from torch.nn import functional

from families.tensors import number

TOLERANCE = 1e-9
TOKENS = 13
CLASSES = 3
PAD = 0
IGNORED = -100


def rounded(values):
    return {"shape": list(values.shape),
            "values": [float(f"{number(value):.12g}") for value in values.detach().reshape(-1).tolist()]}


def case(model, lengths, length, one_label):
    """Texts of some lengths, filled up to one; without lengths, whole ones."""
    model = model.double().train()
    for name, parameter in model.named_parameters():
        gain = parameter.ndim == 1 and name.endswith("weight")
        parameter.data = (torch.randn(parameter.shape) * 0.2 + (1 if gain else 0)).round(decimals=3)
    tokens = torch.randint(PAD + 1, TOKENS, (len(lengths), length))
    labels = torch.randint(CLASSES, (len(lengths),)) if one_label else torch.randint(TOKENS, tokens.shape)
    for text, end in enumerate(lengths):
        tokens[text, end:] = PAD
        if not one_label:
            labels[text, end:] = IGNORED
            labels[text, 1] = IGNORED
    logits = model(input_ids=tokens, attention_mask=(tokens != PAD).long()).logits
    loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED)
    loss.backward()
    return {
        "tokens": rounded(tokens), "labels": rounded(labels), "logits": rounded(logits), "loss": rounded(loss),
        "parameters": {name: rounded(parameter) for name, parameter in model.named_parameters()},
        "gradients": {name: rounded(parameter.grad) for name, parameter in model.named_parameters()},
    }


def cases():
    from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

    config = BertConfig(vocab_size=TOKENS, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=20, max_position_embeddings=10, hidden_dropout_prob=0,
                        attention_probs_dropout_prob=0, pad_token_id=PAD, num_labels=CLASSES,
                        attn_implementation="eager")
    return {
        "masked": {"whole": case(BertForMaskedLM(config), [10, 10], 10, False),
                   "padded": case(BertForMaskedLM(config), [8, 5, 2], 8, False)},
        "classes": {"padded": case(BertForSequenceClassification(config), [7, 3, 1, 6], 7, True)},
    }
