# SPDX-License-Identifier: Apache-2.0
"""Language models of Hugging Face's, as the comparisons with PyTorch train them: without dropout."""
from torch import nn


class Logits(nn.Module):
    """[N, T] tokens to [N, vocabulary, T], as the loss takes them."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits.transpose(1, 2)


def gpt2(vocabulary, context, **sizes):
    """`sizes`: n_embd, n_layer and n_head where they are not those of GPT-2 with 124 million parameters."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return Logits(GPT2LMHeadModel(GPT2Config(
        vocab_size=vocabulary, n_positions=context, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None,
        eos_token_id=None, attn_implementation="sdpa", **sizes)))
