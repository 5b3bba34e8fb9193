# SPDX-License-Identifier: Apache-2.0
"""Twenty steps of each optimizer, weights and state behind each, in float64.

The parameters are those of two linear layers, kept.weight [3, 2], kept.bias [3], late.weight [2, 2], late.bias [2].
kept.bias has no gradient in step 5; late.weight none before step 10, where it is unfrozen. Where PyTorch has the
optimizer, it computes; LAMB, NovoGrad, LARC and LARS are written down here as their papers and Apex define them.
"""

import math

import torch

STEPS = 20
TOLERANCE = 1e-11  # the numbers are written with 12 digits
SHAPES = [(3, 2), (3,), (2, 2), (2,)]
IS_WEIGHT = [True, False, True, False]


def numbers(values):
    return [float(f"{value:.12g}") for value in values.detach().reshape(-1).tolist()]


def has_gradient(parameter, step):
    return not (parameter == 1 and step == 5) and not (parameter == 2 and step < 10)


class Run:
    """Where all runs start, and the gradients that they are given."""

    def __init__(self):
        # Numbers that float16 can hold.
        self.weights = [(torch.randn(shape) * 64).round() / 64 for shape in SHAPES]
        self.gradients = [[(torch.randn(shape) * 64).round() / 64 for shape in SHAPES] for _ in range(STEPS)]

    def follow(self, job, step, state):
        """step(parameters, gradients or None) changes the parameters; state(i) gives those of parameter i by name."""
        parameters = [weight.clone() for weight in self.weights]
        steps = []
        for number in range(1, STEPS + 1):
            gradients = [self.gradients[number - 1][i] if has_gradient(i, number) else None for i in range(len(SHAPES))]
            step(parameters, gradients)
            steps.append({"weights": [numbers(parameter) for parameter in parameters],
                          "state": [state(i) for i in range(len(SHAPES))]})
        return {"job": job, "steps": steps}


class Torch:
    """An optimizer of PyTorch; `names` maps the names of its state to Lockstep's."""

    def __init__(self, kind, names, weight_decay=0.0, biases_decay=0.0, start=0.0, wrap=None, **options):
        self.kind, self.names, self.options, self.start = kind, names, options, start
        self.decays = [weight_decay if weight else biases_decay for weight in IS_WEIGHT]
        self.optimizer = None
        self.wrap = wrap

    def step(self, parameters, gradients):
        if self.optimizer is None:
            self.optimizer = self.kind([{"params": [parameter], "weight_decay": decay}
                                        for parameter, decay in zip(parameters, self.decays)], **self.options)
            self.parameters = parameters
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = None if gradient is None else gradient.clone()
        decays = [group["weight_decay"] for group in self.optimizer.param_groups]
        if self.wrap:
            self.wrap(self.optimizer)
        self.optimizer.step()
        for group, decay in zip(self.optimizer.param_groups, decays):
            group["weight_decay"] = decay

    def state(self, i):
        found = self.optimizer.state.get(self.parameters[i], {})
        values = {}
        for theirs, ours in self.names.items():
            value = found.get(theirs)
            values[ours] = numbers(torch.full_like(self.parameters[i], self.start) if value is None else value)
        return values


def larc(trust_coefficient=0.02, clip=True, epsilon=1e-8):
    """Apex's LARC, around an optimizer."""

    def wrap(optimizer):
        for group in optimizer.param_groups:
            decay, group["weight_decay"] = group["weight_decay"], 0
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                weight, gradient = parameter.norm().item(), parameter.grad.norm().item()
                if weight == 0 or gradient == 0:
                    continue
                rate = trust_coefficient * weight / (gradient + weight * decay + epsilon)
                if clip:
                    rate = min(rate / group["lr"], 1)
                parameter.grad = rate * (parameter.grad + decay * parameter)

    return wrap


class Written:
    """The base of the rules below: one step of one parameter with a count of steps of its own."""

    def __init__(self, weight_decay=0.0, biases_decay=0.0, **options):
        self.decays = [weight_decay if weight else biases_decay for weight in IS_WEIGHT]
        self.__dict__.update(options)
        self.counts = [0] * len(SHAPES)
        self.states = [self.start(shape) for shape in SHAPES]

    def step(self, parameters, gradients):
        gradients = self.prepared(gradients)
        for i, gradient in enumerate(gradients):
            if gradient is None:
                continue
            self.counts[i] += 1
            parameters[i] -= self.change(i, parameters[i], gradient, self.states[i], self.counts[i])

    def prepared(self, gradients):
        return gradients

    def state(self, i):
        return {name: numbers(value) for name, value in self.states[i].items()}


class Lamb(Written):
    """Apex's FusedLAMB; arXiv 1904.00962."""

    lr, beta1, beta2, epsilon = 0.01, 0.9, 0.999, 1e-6
    bias_correction, grad_averaging, max_grad_norm, use_nvlamb, adam_w_mode = True, True, 1.0, False, True

    def start(self, shape):
        return {"exp_avg": torch.zeros(shape), "exp_avg_sq": torch.zeros(shape)}

    def prepared(self, gradients):
        norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients if gradient is not None))
        divisor = norm / self.max_grad_norm if 0 < self.max_grad_norm < norm else 1.0
        return [None if gradient is None else gradient / divisor for gradient in gradients]

    def change(self, i, weight, gradient, state, step):
        decay = self.decays[i]
        if not self.adam_w_mode:
            gradient = gradient + decay * weight
        share = 1 - self.beta1 if self.grad_averaging else 1.0
        state["exp_avg"] = self.beta1 * state["exp_avg"] + share * gradient
        state["exp_avg_sq"] = self.beta2 * state["exp_avg_sq"] + (1 - self.beta2) * gradient.square()
        correction1 = 1 - self.beta1**step if self.bias_correction else 1.0
        correction2 = 1 - self.beta2**step if self.bias_correction else 1.0
        update = state["exp_avg"] / correction1 / ((state["exp_avg_sq"] / correction2).sqrt() + self.epsilon)
        if self.adam_w_mode:
            update = update + decay * weight
        ratio = 1.0
        if (self.use_nvlamb or decay != 0) and weight.norm() != 0 and update.norm() != 0:
            ratio = weight.norm() / update.norm()
        return self.lr * ratio * update


class Novograd(Written):
    """Apex's FusedNovoGrad; arXiv 1905.11286. Its exp_avg_sq is the running norm."""

    lr, beta1, beta2, epsilon = 0.01, 0.9, 0.999, 1e-8
    bias_correction, grad_averaging, reg_inside_moment, init_zero, largest = True, True, False, False, False

    def start(self, shape):
        return {"exp_avg": torch.zeros(shape), "exp_avg_sq": torch.zeros(1)}

    def change(self, i, weight, gradient, state, step):
        decay = self.decays[i]
        norm = gradient.abs().max() if self.largest else gradient.norm()
        if step == 1 and not self.init_zero:
            state["exp_avg_sq"] = norm.reshape(1).clone()
        if self.largest:
            state["exp_avg_sq"] = self.beta2 * state["exp_avg_sq"] + (1 - self.beta2) * norm
        else:
            state["exp_avg_sq"] = (self.beta2 * state["exp_avg_sq"].square() + (1 - self.beta2) * norm.square()).sqrt()
        correction1 = 1 - self.beta1**step if self.bias_correction else 1.0
        correction2 = math.sqrt(1 - self.beta2**step) if self.bias_correction else 1.0
        denominator = state["exp_avg_sq"] / correction2 + self.epsilon
        share = 1 - self.beta1 if self.grad_averaging else 1.0
        if self.reg_inside_moment:
            state["exp_avg"] = self.beta1 * state["exp_avg"] + share * (gradient / denominator + decay * weight)
            return self.lr * state["exp_avg"] / correction1
        state["exp_avg"] = self.beta1 * state["exp_avg"] + share * gradient
        return self.lr * (state["exp_avg"] / correction1 / denominator + decay * weight)


class Lion(Written):
    """arXiv 2302.06675."""

    lr, beta1, beta2 = 0.01, 0.9, 0.99

    def start(self, shape):
        return {"exp_avg": torch.zeros(shape)}

    def change(self, i, weight, gradient, state, step):
        direction = self.beta1 * state["exp_avg"] + (1 - self.beta1) * gradient
        state["exp_avg"] = self.beta2 * state["exp_avg"] + (1 - self.beta2) * gradient
        return self.lr * (direction.sign() + self.decays[i] * weight)


class Lars(Written):
    """arXiv 1708.03888; where a norm is 0, as MLPerf. Biases have no rate of their own."""

    lr, momentum, trust_coefficient, epsilon, nesterov = 1.0, 0.9, 0.001, 0.0, False

    def start(self, shape):
        return {"momentum": torch.zeros(shape)}

    def change(self, i, weight, gradient, state, step):
        decay = self.decays[i]
        rate = self.lr
        if IS_WEIGHT[i] and weight.norm() > 0 and gradient.norm() > 0:
            rate *= self.trust_coefficient * weight.norm() / (gradient.norm() + decay * weight.norm() + self.epsilon)
        move = rate * (gradient + decay * weight)
        state["momentum"] = self.momentum * state["momentum"] + move
        return move + self.momentum * state["momentum"] if self.nesterov else state["momentum"]


def cases():
    run = Run()
    decaying_biases = 'group { match: "bias$" weight_decay: 0.0625 }'
    sgd, adam = {"momentum_buffer": "momentum"}, {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
    amsgrad = {**adam, "max_exp_avg_sq": "max_exp_avg_sq"}
    runs = {
        "sgd": ("sgd { lr: 0.1 momentum: 0.9 dampening: 0.25 weight_decay: 0.125 }",
                Torch(torch.optim.SGD, sgd, lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.125)),
        "adam": ("adam { lr: 0.01 weight_decay: 0.125 }", Torch(torch.optim.Adam, adam, lr=0.01, weight_decay=0.125)),
        "adam_amsgrad": ("adam { lr: 0.01 beta2: 0.9 weight_decay: 0.125 amsgrad: true }",
                         Torch(torch.optim.Adam, amsgrad, lr=0.01, betas=(0.9, 0.9), weight_decay=0.125, amsgrad=True)),
        "adamw_amsgrad": (f"adamw {{ lr: 0.01 beta2: 0.9 weight_decay: 0.125 amsgrad: true }} {decaying_biases}",
                          Torch(torch.optim.AdamW, amsgrad, lr=0.01, betas=(0.9, 0.9), weight_decay=0.125,
                                biases_decay=0.0625, amsgrad=True)),
        "adagrad": ("adagrad { lr: 0.1 }", Torch(torch.optim.Adagrad, {"sum": "sum"}, lr=0.1)),
        "adagrad_all": (f"adagrad {{ lr: 0.1 lr_decay: 0.25 weight_decay: 0.125 initial_accumulator_value: 0.5 "
                        f"epsilon: 1e-5 }} {decaying_biases}",
                        Torch(torch.optim.Adagrad, {"sum": "sum"}, lr=0.1, lr_decay=0.25, weight_decay=0.125,
                              biases_decay=0.0625, initial_accumulator_value=0.5, start=0.5, eps=1e-5)),
        "rmsprop": ("rmsprop { lr: 0.01 weight_decay: 0.125 }",
                    Torch(torch.optim.RMSprop, {"square_avg": "square_avg"}, lr=0.01, weight_decay=0.125)),
        "rmsprop_momentum": (f"rmsprop {{ lr: 0.01 alpha: 0.75 epsilon: 1e-5 momentum: 0.5 weight_decay: 0.125 }} "
                             f"{decaying_biases}",
                             Torch(torch.optim.RMSprop, {"square_avg": "square_avg", **sgd}, lr=0.01, alpha=0.75,
                                   eps=1e-5, momentum=0.5, weight_decay=0.125, biases_decay=0.0625)),
        "rmsprop_centered": ("rmsprop { lr: 0.01 alpha: 0.75 epsilon: 0.0625 momentum: 0.5 centered: true }",
                             Torch(torch.optim.RMSprop, {"square_avg": "square_avg", "grad_avg": "grad_avg", **sgd},
                                   lr=0.01, alpha=0.75, eps=0.0625, momentum=0.5, centered=True)),
        "lion": (f"lion {{ lr: 0.01 weight_decay: 0.125 }} {decaying_biases}",
                 Lion(weight_decay=0.125, biases_decay=0.0625)),
        "lamb": ("lamb { lr: 0.01 weight_decay: 0.125 }", Lamb(weight_decay=0.125)),
        "lamb_nvlamb": ("lamb { lr: 0.01 weight_decay: 0.125 use_nvlamb: true max_grad_norm: 0 bias_correction: false }",
                        Lamb(weight_decay=0.125, use_nvlamb=True, max_grad_norm=0, bias_correction=False)),
        "lamb_coupled": (f"lamb {{ lr: 0.01 weight_decay: 0.125 adam_w_mode: false grad_averaging: false "
                         f"max_grad_norm: 3 }} {decaying_biases}",
                         Lamb(weight_decay=0.125, biases_decay=0.0625, adam_w_mode=False, grad_averaging=False,
                              max_grad_norm=3)),
        "novograd": ("novograd { lr: 0.01 weight_decay: 0.125 }", Novograd(weight_decay=0.125)),
        "novograd_paper": (f"novograd {{ lr: 0.01 beta1: 0.95 beta2: 0.98 weight_decay: 0.125 reg_inside_moment: true "
                           f"grad_averaging: false bias_correction: false }} {decaying_biases}",
                           Novograd(weight_decay=0.125, biases_decay=0.0625, beta1=0.95, beta2=0.98,
                                    reg_inside_moment=True, grad_averaging=False, bias_correction=False)),
        "novograd_largest": ("novograd { lr: 0.01 norm: LARGEST init_zero: true }",
                             Novograd(largest=True, init_zero=True)),
        "lars": ("lars { lr: 1 weight_decay: 0.125 trust_coefficient: 0.125 }",
                 Lars(weight_decay=0.125, trust_coefficient=0.125)),
        "lars_nesterov": (f"lars {{ lr: 1 momentum: 0.5 weight_decay: 0.125 trust_coefficient: 0.125 epsilon: 0.25 "
                          f"nesterov: true }}",
                          Lars(weight_decay=0.125, momentum=0.5, trust_coefficient=0.125, epsilon=0.25, nesterov=True)),
        "larc_sgd": ("sgd { lr: 0.1 momentum: 0.9 weight_decay: 0.125 } larc { }",
                     Torch(torch.optim.SGD, sgd, lr=0.1, momentum=0.9, weight_decay=0.125, wrap=larc())),
        "larc_scaling": (f"sgd {{ lr: 0.1 momentum: 0.9 weight_decay: 0.125 }} "
                         f"larc {{ trust_coefficient: 0.5 clip: false epsilon: 0.125 }} {decaying_biases}",
                         Torch(torch.optim.SGD, sgd, lr=0.1, momentum=0.9, weight_decay=0.125, biases_decay=0.0625,
                               wrap=larc(0.5, False, 0.125))),
        "larc_adamw": ("adamw { lr: 0.01 weight_decay: 0.125 } larc { }",
                       Torch(torch.optim.AdamW, adam, lr=0.01, weight_decay=0.125, wrap=larc())),
    }
    return {
        "start": {"weights": [numbers(weight) for weight in run.weights],
                  "gradients": [[numbers(gradient) for gradient in step] for step in run.gradients]},
        "runs": {name: run.follow(job, rule.step, rule.state) for name, (job, rule) in runs.items()},
    }
