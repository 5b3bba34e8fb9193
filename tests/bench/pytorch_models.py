# SPDX-License-Identifier: Apache-2.0
"""Models of Lockstep's zoo as PyTorch's users train them on a CPU: PyTorch's side of scripts/compare.

  PYTHON-WITH-TORCH tests/bench/pytorch_models.py list
  PYTHON-WITH-TORCH tests/bench/pytorch_models.py prepare MODEL FOLDER
  PYTHON-WITH-TORCH tests/bench/pytorch_models.py run MODEL FOLDER --dtype fp32|bf16|fp16 [--seconds S] [--losses N] [--compile]

prepare writes a batch, initial weights under the names that Lockstep reads (PyTorch's own where it knows them), and
Lockstep's job for both into FOLDER. run trains the model on that batch: channels last, oneDNN, a fused optimizer,
DistributedDataParallel over gloo where WORLD_SIZE says that there are several ranks; autocast in 16 bits, with a
GradScaler in fp16. It answers as tests/bench/step_bench.cpp does: a JSON line once it is warm, and then one for each line
that it reads, after a round of steps.

A model that torchvision has is a row of tests/support/models.py; another one is an entry of MODELS and what it names.
"""
import argparse
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import statistics
import sys
import time
from typing import Callable

import torch
from torch import distributed, nn
from torch.nn import functional

import hugging_face

for folder in ("golden", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
import models  # noqa: E402
import pytorch_side  # noqa: E402

CLASSES = 10
CONTEXT = 128
VOCABULARY = 256
RATE = 1e-4  # step_bench's where the job's optimizer is not SGD
SGD_RATE = 1e-4  # small, so that rounding does not lead the sides apart in a few steps


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=SGD_RATE, momentum=0.9, fused=True)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=RATE, weight_decay=0, fused=True)


@dataclasses.dataclass
class Case:
    job: str                                  # model, optimizer, loss of Lockstep's job
    batch: int                                # samples of a step, over all ranks
    build: Callable[[], nn.Module]
    data: Callable                            # (batch, folder) -> (x, y) as PyTorch takes them; writes Lockstep's files
    names: Callable = lambda state: state     # a state_dict as Lockstep reads it
    loss: Callable = functional.cross_entropy
    optimizer: Callable = sgd


# ---- Data: written once, read by both sides ----

def save_arrays(folder, x, y, kind):
    import numpy

    numpy.save(folder / "x.npy", x.numpy())
    numpy.save(folder / "y.npy", y.numpy())
    return f'arrays {{ features: "x.npy" targets: "y.npy" {kind} }}'


def images(*extents):
    """Images [H, W, C]; here [N, C, H, W] in channels last."""
    def make(batch, folder):
        x, y = torch.randn(batch, *extents), torch.randint(CLASSES, (batch,))
        text = save_arrays(folder, x, y, f"classes: {CLASSES}")
        return x.permute(0, 3, 1, 2), y, text
    return make


def vectors(width):
    def make(batch, folder):
        x, y = torch.randn(batch, width), torch.randint(CLASSES, (batch,))
        return x, y, save_arrays(folder, x, y, f"classes: {CLASSES}")
    return make


def volumes(extent):
    def make(batch, folder):
        x, y = torch.randn(batch, extent, extent, extent, 1), torch.randint(2, (batch, extent, extent, extent)).float()
        return x.permute(0, 4, 1, 2, 3), y.unsqueeze(1), save_arrays(folder, x, y, "target_kind: NUMBERS")
    return make


def pixels(extent):
    """Images with a class a pixel."""
    def make(batch, folder):
        x, y = torch.randn(batch, extent, extent, 3), torch.randint(CLASSES, (batch, extent, extent))
        return x.permute(0, 3, 1, 2), y, save_arrays(folder, x, y, f"classes: {CLASSES}")
    return make


def texts(batch, folder):
    tokens = torch.randint(VOCABULARY, (batch * CONTEXT + 1,), dtype=torch.uint8)
    (folder / "text").write_bytes(tokens.numpy().tobytes())
    tokens = tokens.long()
    return tokens[:-1].view(batch, CONTEXT), tokens[1:].view(batch, CONTEXT), \
        f'tokens {{ files: "text" format: BYTES context: {CONTEXT} }}'


def classes_of_texts(batch, folder):
    x, y = torch.randint(VOCABULARY, (batch, CONTEXT)), torch.randint(CLASSES, (batch,))
    return x, y, save_arrays(folder, x, y, f"classes: {CLASSES} vocabulary: {VOCABULARY}")


# ---- Models ----

def mlp():
    return nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, CLASSES))


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Flatten(), nn.Linear(1024, CLASSES))


def convnet_names(state):
    """Lockstep flattens channels last."""
    state = renamed({"0": "block0_conv", "1": "block0_norm", "3": "block1_conv", "4": "block1_norm",
                     "7": "classifier"})(state)
    weight = state["classifier.weight"]
    return state | {"classifier.weight": weight.view(CLASSES, 64, 16).transpose(1, 2).reshape(CLASSES, 1024)}


def small_resnet18():
    model = pytorch_side.model_of("resnet18", {"num_classes": CLASSES})
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def gpt():
    return hugging_face.gpt2(VOCABULARY, CONTEXT, n_embd=256, n_layer=4, n_head=4)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return hugging_face.Logits(LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, hidden_size=256, intermediate_size=768,
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, rms_norm_eps=1e-5, bos_token_id=None,
        eos_token_id=None, attn_implementation="sdpa")))


class Classes(nn.Module):
    """A classifier of texts of Hugging Face's."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(input_ids=tokens).logits


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    return Classes(BertForSequenceClassification(BertConfig(
        vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, hidden_size=256, intermediate_size=1024,
        num_hidden_layers=4, num_attention_heads=4, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
        num_labels=CLASSES, pad_token_id=None, attn_implementation="sdpa")))


UNET = {"channels": 8, "levels": 3, "convolutions": 2, "norm": "BATCH", "up": "TRANSPOSED", "activation": "RELU",
        "groups": 1}


def unet3d():
    from families.unet3d import UNet

    return UNet({**UNET, "inputs": 1, "outputs": 1})


def unet2d():
    from families.unet3d import UNet

    return UNet({**UNET, "rank": 2, "inputs": 3, "outputs": CLASSES})


def bce_dice(logits, target):
    from families.unet3d import dice

    return functional.binary_cross_entropy_with_logits(logits, target) + dice(torch.sigmoid(logits), target)


# ---- Names ----

def renamed(modules):
    """Modules by what Lockstep calls them."""
    def names(state):
        return {f"{modules[name.rpartition('.')[0]]}.{name.rpartition('.')[2]}": tensor for name, tensor in state.items()}
    return names


def without_wrapper(state):
    """Hugging Face's names, which Lockstep reads."""
    return {name.removeprefix("model."): tensor for name, tensor in state.items()}


def unet_names(make):
    def names(state):
        model = make()
        by_module = {id(module): name for name, module in model.named()}
        return renamed({name: by_module[id(module)] for name, module in model.named_modules()
                        if id(module) in by_module})(state)
    return names


SGD = f"optimizer {{ sgd {{ lr: {SGD_RATE} momentum: 0.9 }} }} train {{ steps: 1 }}"
ADAMW = f"optimizer {{ adamw {{ lr: {RATE} weight_decay: 0 }} }} train {{ steps: 1 }}"


def of_images(name, bench):
    return Case(f"model {{ {name} {{ {bench.options} }} }} " + (ADAMW if bench.adamw else SGD), bench.batch,
                lambda: pytorch_side.model_of(bench.theirs.kind, bench.theirs.config), images(*bench.extents),
                optimizer=adamw if bench.adamw else sgd)


MODELS = {
    "mlp": Case("model { mlp { hidden: [1024, 1024] } } " + SGD, 64, mlp, vectors(1024),
                renamed({"0": "hidden0_linear", "2": "hidden1_linear", "4": "output"})),
    "convnet": Case("model { convnet { block { channels: 32 } block { channels: 64 stride: 2 } } } " + SGD, 64, convnet,
                    images(8, 8, 1), convnet_names),
    "resnet, 32x32": Case("model { resnet { depth: 18 stem: CIFAR } } " + SGD, 16, small_resnet18, images(32, 32, 3)),
    "gpt": Case(f"model {{ gpt {{ layers: 4 heads: 4 width: 256 context: {CONTEXT} }} }} " + ADAMW, 8, gpt, texts,
                without_wrapper, optimizer=adamw),
    "llama": Case(f"model {{ llama {{ layers: 4 heads: 4 width: 256 hidden: 768 context: {CONTEXT} }} }} " + ADAMW, 8,
                  llama, texts, without_wrapper, optimizer=adamw),
    "bert": Case(f"model {{ bert {{ layers: 4 heads: 4 width: 256 context: {CONTEXT} dropout: 0 }} }} " + ADAMW, 8, bert,
                 classes_of_texts, without_wrapper, optimizer=adamw),
    "unet3d": Case("model { unet3d { levels: 3 channels: 8 } } " + ADAMW.replace("steps: 1", "steps: 1 loss: BCE_DICE"),
                   2, unet3d, volumes(32), unet_names(unet3d), bce_dice, adamw),
    "unet2d": Case("model { unet2d { levels: 3 channels: 8 } } " + ADAMW, 4, unet2d, pixels(96), unet_names(unet2d),
                   optimizer=adamw),
} | {f"{name}, {model.bench.extents[0]}x{model.bench.extents[1]}": of_images(name, model.bench)
     for name, model in models.MODELS.items() if model.bench}


# ---- Prepare ----

def prepare(case, folder):
    torch.manual_seed(1)
    folder.mkdir(parents=True, exist_ok=True)
    x, y, dataset = case.data(case.batch, folder)
    model = case.build()
    torch.save(case.names(model.state_dict()), folder / "weights.pt")
    torch.save({"x": x, "y": y, "state": model.state_dict()}, folder / "start.pt")
    # PyTorch's batch norm computes its statistics on each rank.
    (folder / "job.pbtxt").write_text(
        f"{case.job}\ndata {{ global_batch: {case.batch} shuffle: false train {{ {dataset} }} }}\n"
        'comm { sync_batch_norm: false }\ninit_from { path: "weights.pt" }\n', encoding="utf-8")


# ---- Run ----

def resident_bytes(line):
    for text in pathlib.Path("/proc/self/status").read_text().splitlines():
        if text.startswith(line + ":"):
            return 1024 * int(text.split()[1])
    return 0


def forget_peak():
    """VmHWM begins anew: what loading the weights took is no part of a step."""
    ctypes.CDLL(None).malloc_trim(0)
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # a container may forbid it


class Training:
    def __init__(self, case, folder, arguments):
        self.ranks = int(os.environ.get("WORLD_SIZE", "1"))
        rank = int(os.environ.get("RANK", "0"))
        with torch.device("meta"):
            case.build()  # imports what it needs
        self.resident_at_start = resident_bytes("VmRSS")
        start = torch.load(folder / "start.pt")
        share = slice(case.batch * rank // self.ranks, case.batch * (rank + 1) // self.ranks)
        self.layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(start["x"].dim(), torch.contiguous_format)
        self.x = start["x"][share].contiguous(memory_format=self.layout)
        self.y = start["y"][share].contiguous()
        model = case.build()
        model.load_state_dict(start["state"])
        del start
        model = model.train().to(memory_format=self.layout)
        self.parameters = sum(p.numel() for p in model.parameters())
        if self.ranks > 1:
            distributed.init_process_group("gloo")
            # The buffers are each rank's own, as step_bench's.
            model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
        self.model = torch.compile(model) if arguments.compile else model
        self.optimizer = case.optimizer(model.parameters())
        self.loss_of = case.loss
        self.dtype = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[arguments.dtype]
        self.scaler = torch.amp.GradScaler("cpu", enabled=self.dtype == torch.float16)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=self.dtype, enabled=self.dtype is not None):
            output = self.model(self.x)
        loss = self.loss_of(output.float(), self.y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def loss(self):
        """A step's, over all ranks."""
        loss = self.step().detach()
        if self.ranks > 1:
            distributed.all_reduce(loss)
        return loss.item() / self.ranks

    def of_rank_0(self, value):
        found = torch.tensor([value], dtype=torch.float64)
        if self.ranks > 1:
            distributed.broadcast(found, 0)
        return found.item()


def milliseconds(training, steps):
    start = time.perf_counter()
    for _ in range(steps):
        training.step()
    return 1e3 * (time.perf_counter() - start) / steps


def run(case, folder, arguments):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    training = Training(case, folder, arguments)
    losses = [training.loss() for _ in range(arguments.losses)]
    step = training.of_rank_0(milliseconds(training, 1))
    # Warms up; a step of seconds is warm at once.
    step = training.of_rank_0(milliseconds(training, int(min(max(1e3 * arguments.seconds / step, 1), 15))))
    # As step_bench has it.
    trains = int(min(max(1e3 * arguments.seconds / step, 1), 9))
    steps = int(min(max(1e3 * arguments.seconds / step / trains, 1), 200))
    forget_peak()
    print(json.dumps({"ready": True, "torch": torch.__version__, "parameters": training.parameters, "losses": losses}),
          flush=True)
    for _ in sys.stdin:
        found = statistics.median(milliseconds(training, steps) for _ in range(trains))
        print(json.dumps({"step_ms": found, "resident_at_start": training.resident_at_start,
                          "peak_resident": resident_bytes("VmHWM")}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # gloo's threads abort some processes that end in order


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "prepare", "run"])
    parser.add_argument("model", nargs="?", choices=MODELS)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a round lasts, about")
    parser.add_argument("--losses", type=int, default=0, help="of the first steps, in the first line")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    arguments = parser.parse_args()
    if arguments.what == "list":
        print(json.dumps({"models": {name: case.batch for name, case in MODELS.items()}, "torch": torch.__version__}))
    elif arguments.model is None or arguments.folder is None:
        parser.error(f"{arguments.what} needs MODEL and FOLDER")
    elif arguments.what == "prepare":
        prepare(MODELS[arguments.model], arguments.folder)
    else:
        run(MODELS[arguments.model], arguments.folder, arguments)


if __name__ == "__main__":
    main()
