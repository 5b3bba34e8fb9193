# SPDX-License-Identifier: Apache-2.0
"""GPT-2 and Llama of Hugging Face's transformers, with all gradients. Parameters have their names and layout.

Needs the package transformers beside torch."""

import torch
from torch.nn import functional as F

from families.tensors import number

TOLERANCE = 1e-9
TOKENS = 13
IGNORED = -100


def rounded(values, digits):
    return {"shape": list(values.shape),
            "values": [float(f"{number(value):.{digits}g}") for value in values.detach().reshape(-1).tolist()]}


def case(model, sequences, length):
    model = model.double().train()
    for name, parameter in model.named_parameters():
        gain = parameter.ndim == 1 and name.endswith("weight")
        parameter.data = (torch.randn(parameter.shape) * 0.2 + (1 if gain else 0)).round(decimals=3)
    tokens = torch.randint(TOKENS, (sequences, length))
    labels = torch.randint(TOKENS, (sequences, length))
    labels[0, 1] = IGNORED
    logits = model(input_ids=tokens, use_cache=False).logits
    loss = F.cross_entropy(logits.reshape(-1, TOKENS), labels.reshape(-1), ignore_index=IGNORED)
    loss.backward()
    return {
        "tokens": rounded(tokens, 12), "labels": rounded(labels, 12), "logits": rounded(logits, 12),
        "loss": rounded(loss, 12),
        "parameters": {name: rounded(parameter, 12) for name, parameter in model.named_parameters()},
        "gradients": {name: rounded(parameter.grad, 12) for name, parameter in model.named_parameters()},
    }


class Float64Torch:
    """torch to a module that asks for torch.float: float64."""
    float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def scaled_frequencies(scaling, config):
    """Those of transformers' own functions, _compute_llama3_parameters and _compute_linear_scaling_rope_parameters."""
    from transformers import modeling_rope_utils

    modeling_rope_utils.torch = Float64Torch()
    try:
        return modeling_rope_utils.ROPE_INIT_FUNCTIONS[scaling](config)[0]
    finally:
        modeling_rope_utils.torch = torch


def in_float64(llama):
    """Hugging Face's norms and angles are float32 whatever the model is, as its eager attention; the file is float64's."""
    from transformers.models.llama import modeling_llama

    def norm(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, self.variance_epsilon)

    def angles(self, x, position_ids):
        channels = 2 * self.inv_freq.numel()
        theta = self.config.rope_parameters["rope_theta"]
        frequencies = theta ** (-torch.arange(0, channels, 2, dtype=torch.float64) / channels)
        scaling = self.config.rope_parameters["rope_type"]
        if scaling != "default":
            frequencies = scaled_frequencies(scaling, self.config)
        turned = position_ids[:, :, None].double() * frequencies
        both = torch.cat([turned, turned], dim=-1)
        return both.cos(), both.sin()

    for module in llama.modules():
        if isinstance(module, modeling_llama.LlamaRMSNorm):
            module.forward = norm.__get__(module)
        if isinstance(module, modeling_llama.LlamaRotaryEmbedding):
            module.forward = angles.__get__(module)
    return llama


def cases():
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    def gpt(**options):
        return GPT2LMHeadModel(GPT2Config(
            vocab_size=TOKENS, n_positions=16, n_embd=16, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
            bos_token_id=None, eos_token_id=None, attn_implementation="eager", **options))

    def llama(heads=4, **options):
        return in_float64(LlamaForCausalLM(LlamaConfig(
            vocab_size=TOKENS, max_position_embeddings=16, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
            num_attention_heads=heads, rms_norm_eps=1e-5, bos_token_id=None, eos_token_id=None,
            attn_implementation="sdpa", **options)))

    # Of the four frequencies the first stays, the second is mixed and the others are slowed.
    llama3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 0.5, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 64}
    linear = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}

    return {
        "gpt": {"tied": case(gpt(), 2, 16)},
        "llama": {"grouped_queries": case(llama(num_key_value_heads=2), 2, 16),
                  "tied_biased_shorter": case(llama(num_key_value_heads=1, attention_bias=True,
                                                    tie_word_embeddings=True,
                                                    rope_parameters={"rope_type": "default", "rope_theta": 500.0}), 1, 9),
                  "llama3_scaling": case(llama(heads=2, rope_parameters=llama3), 1, 16),
                  "linear_scaling": case(llama(heads=2, rope_parameters=linear), 1, 16)},
    }
