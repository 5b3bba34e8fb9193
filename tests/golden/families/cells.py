# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM cells: two steps, so that a gradient passes through the state."""

import torch

from families.tensors import leaf, tensor


def cell_case(cell, **options):
    cell = cell(3, 4, **options)
    for parameter in cell.parameters():
        parameter.data = torch.randn(parameter.shape).round(decimals=4)
    x, h, c = leaf(2, 3), leaf(2, 4), leaf(2, 4)
    lstm = isinstance(cell, torch.nn.LSTMCell)
    state = (h, c) if lstm else h
    for _ in range(2):
        state = cell(x, state)
    y = state[0] + state[1] if lstm else state
    dy = leaf(*y.shape)
    y.backward(dy)
    case = {"x": tensor(x), "h": tensor(h), "y": tensor(y), "dy": tensor(dy), "dx": tensor(x.grad), "dh": tensor(h.grad)}
    if lstm:
        case.update(c=tensor(c), dc=tensor(c.grad))
    for name, parameter in cell.named_parameters():
        case.update({name: tensor(parameter), f"d{name}": tensor(parameter.grad)})
    return case


def cases():
    return {
        "rnn": {"tanh": cell_case(torch.nn.RNNCell), "relu": cell_case(torch.nn.RNNCell, nonlinearity="relu")},
        "gru": {"plain": cell_case(torch.nn.GRUCell)},
        "lstm": {"plain": cell_case(torch.nn.LSTMCell), "without_bias": cell_case(torch.nn.LSTMCell, bias=False)},
    }
