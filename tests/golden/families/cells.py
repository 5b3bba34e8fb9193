# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM cells: two steps, so that a gradient passes through the state. Their layers over sequences."""

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


def layers_case(layers, lengths=None, **options):
    """Three sequences of up to four elements: outputs, last states, and the gradients of both by x and all parameters."""
    layers = layers(3, 2, batch_first=True, **options)
    for parameter in layers.parameters():
        parameter.data = torch.randn(parameter.shape).round(decimals=4)
    x = leaf(3, 4, 3)
    read = x
    if lengths is not None:
        read = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, last = layers(read)
    if lengths is not None:
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=4)
    h, c = last if isinstance(last, tuple) else (last, None)
    dy, dh = leaf(*y.shape), leaf(*h.shape)
    loss = (y * dy).sum() + (h * dh).sum() + (0 if c is None else (c * dh).sum())
    loss.backward()
    case = {"x": tensor(x), "y": tensor(y), "h": tensor(h), "dy": tensor(dy), "dh": tensor(dh), "dx": tensor(x.grad)}
    if c is not None:
        case["c"] = tensor(c)
    if lengths is not None:
        case["lengths"] = lengths
    case["parameters"] = {name: tensor(parameter) for name, parameter in layers.named_parameters()}
    case["gradients"] = {name: tensor(parameter.grad) for name, parameter in layers.named_parameters()}
    return case


def cases():
    return {
        "rnn": {"tanh": cell_case(torch.nn.RNNCell), "relu": cell_case(torch.nn.RNNCell, nonlinearity="relu")},
        "gru": {"plain": cell_case(torch.nn.GRUCell)},
        "lstm": {"plain": cell_case(torch.nn.LSTMCell), "without_bias": cell_case(torch.nn.LSTMCell, bias=False)},
        "layers": {
            "rnn": layers_case(torch.nn.RNN, num_layers=2),
            "gru": layers_case(torch.nn.GRU, num_layers=2, bidirectional=True),
            "gru_of_lengths": layers_case(torch.nn.GRU, [4, 2, 1], bidirectional=True),
            "lstm": layers_case(torch.nn.LSTM, bias=False),
            "lstm_of_lengths": layers_case(torch.nn.LSTM, [2, 4, 3], num_layers=2, bidirectional=True),
        },
    }
