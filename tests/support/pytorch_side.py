# SPDX-License-Identifier: Apache-2.0
"""What tests ask of a Python that has PyTorch: pytorch_side.py COMMAND ARGUMENTS. Ends with a message where something
differs.

  has MODULE...                           ends with 1 unless all can be imported
  arrays FOLDER                             made samples: images, volumes, rows, tokens and what is to be learnt of them
  load KIND CONFIG WEIGHTS IN ANSWERS FORM  a strict load into KIND of CONFIG; its answers to IN are ANSWERS
  save KIND CONFIG FOLDER IN OUT            random weights of KIND into FOLDER, its answers to IN into OUT
  same LOGITS ANSWERS FORM                  LOGITS are those of ANSWERS
  pretrained KIND FOLDER IN LOGITS          KIND.from_pretrained(FOLDER) finds all it needs; its answers to IN are LOGITS
  onnx MODEL IN ANSWERS FORM OUT            ONNX's checker, and onnxruntime's answers beside those of lockstep infer
  table TEXT IN NUMBERS                     a CSV table of words, NUMBERS: True with some, and a graph's inputs for its rows
  loss LOGITS LABELS LOSS                   LOSS is the mean cross entropy of LOGITS
KIND: a function of torchvision.models, or a class of transformers. CONFIG: JSON. IN: .npy of images, channels last, or
of tokens, or a .npz with one for each input of the graph, by its name. FORM: what the answers are: logits, softmax,
sigmoid or argmax.
"""
import importlib
import json
import sys

import numpy

BOUND = 1e-5


def close(found, expected, bound=BOUND):
    if found.shape != expected.shape:
        sys.exit(f"shapes differ: {found.shape} and {expected.shape}")
    worst = float(numpy.abs(found - expected).max() / max(1e-30, numpy.abs(expected).max()))
    if not worst <= bound:
        sys.exit(f"answers differ by {worst:.2g} of the largest")


def answers_in_form(logits, form):
    if form == "softmax":
        powers = numpy.exp(logits - logits.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)
    if form == "sigmoid":
        return 1 / (1 + numpy.exp(-logits))
    return logits.argmax(-1) if form == "argmax" else logits


def compare(logits, answers, form):
    if form == "argmax":
        # Of two classes with nearly equal logits either may be first.
        picked = numpy.take_along_axis(logits, answers[..., None].astype(numpy.int64), -1)[..., 0]
        return close(picked, logits.max(-1))
    return close(answers_in_form(logits.astype(numpy.float64), form), answers)


def arrays(folder):
    random = numpy.random.default_rng(1)
    images = random.normal(size=(10, 32, 32, 3)).astype("f4")
    numpy.save(f"{folder}/images.npy", images)
    numpy.save(f"{folder}/pixels.npy", (images.sum(-1) > 1).astype("i8") + (images.sum(-1) > 2))
    numpy.save(f"{folder}/classes.npy", numpy.arange(10) % 5)
    volumes = random.normal(size=(6, 8, 8, 8, 2)).astype("f4")
    numpy.save(f"{folder}/volumes.npy", volumes)
    numpy.save(f"{folder}/masks.npy", (volumes.sum(-1) > 1).astype("f4"))
    numpy.save(f"{folder}/voxels.npy", (volumes.sum(-1) > 1).astype("i8") + (volumes.sum(-1) > 2))
    numpy.save(f"{folder}/rows.npy", random.normal(size=(20, 7)).astype("f4"))
    numpy.save(f"{folder}/values.npy", random.normal(size=(20, 3)).astype("f4"))
    text = random.integers(97, 107, 20 * 16 + 1).astype("u1")
    text.tofile(f"{folder}/text.txt")
    numpy.save(f"{folder}/tokens.npy", text[:-1].reshape(20, 16).astype("i8"))
    numpy.save(f"{folder}/next.npy", text[1:].reshape(20, 16).astype("i8"))
    numpy.save(f"{folder}/labels.npy", numpy.arange(20) % 3)


def model_of(kind, config):
    import torch
    import torchvision

    torch.manual_seed(1)
    if hasattr(torchvision.models, kind):
        return getattr(torchvision.models, kind)(**config)
    import transformers

    model = getattr(transformers, kind)
    return model(model.config_class(**config))


def answers_of(model, samples):
    import torch

    model.eval()
    with torch.no_grad():
        if samples.dtype.kind == "i":
            return model(input_ids=torch.from_numpy(samples.astype("i8"))).logits.numpy()
        answers = model(torch.from_numpy(samples).permute(0, 3, 1, 2))
        return getattr(answers, "logits", answers).numpy()


def load(kind, config, weights, samples, answers, form):
    import safetensors.torch

    model = model_of(kind, json.loads(config))
    model.load_state_dict(safetensors.torch.load_file(weights), strict=True)
    compare(answers_of(model, numpy.load(samples)), numpy.load(answers), form)


def save(kind, config, folder, samples, out):
    import safetensors.torch
    import torch

    model = model_of(kind, json.loads(config))
    for parameter in model.parameters():
        # Not all zeros and ones, and so large that what is computed with them counts.
        parameter.data += (0.3 if hasattr(model, "save_pretrained") else 0.02) * torch.randn_like(parameter)
    if hasattr(model, "save_pretrained"):
        # As published files are: several, with an index.
        model.save_pretrained(folder, max_shard_size="20KB")
    else:
        safetensors.torch.save_file(model.state_dict(), f"{folder}/model.safetensors")
    numpy.save(out, answers_of(model, numpy.load(samples)))


def pretrained(kind, folder, samples, logits):
    import transformers

    model, told = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    if any(told.values()):
        sys.exit(f"from_pretrained says {told}")
    compare(answers_of(model, numpy.load(samples)), numpy.load(logits), "logits")


def same(logits, answers, form):
    compare(numpy.load(logits), numpy.load(answers), form)


def onnx(model, samples, answers, form, out):
    import onnx
    import onnxruntime

    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    loaded = numpy.load(samples)
    inputs = dict(loaded) if isinstance(loaded, numpy.lib.npyio.NpzFile) else {"input": loaded}
    for name, x in inputs.items():
        if x.ndim >= 4:
            inputs[name] = numpy.ascontiguousarray(numpy.moveaxis(x, -1, 1))
        if x.dtype.kind == "i":
            inputs[name] = x.astype("i8")
    # Batches of other sizes than the graph was written with.
    y = numpy.concatenate([session.run(None, {name: x[part] for name, x in inputs.items()})[0]
                           for part in (slice(1), slice(1, None))])
    if y.ndim == inputs["input"].ndim and y.ndim >= 4:
        y = numpy.moveaxis(y, 1, -1)
    numpy.save(out, y)
    compare(y, numpy.load(answers), form)


def table(text, inputs, has_numbers):
    """A table of words, with or without numbers, and the inputs that a graph has for its rows."""
    words, kinds = [f"{i % 7}a" for i in range(24)], [f"k{i * i % 11}" for i in range(24)]
    numbers = numpy.arange(24, dtype="f4").reshape(12, 2).repeat(2, 0) / 8 if has_numbers == "True" else numpy.zeros((24, 0), "f4")
    with open(text, "w", encoding="utf-8") as file:
        print(",".join(["word", "kind", *(f"x{i}" for i in range(numbers.shape[1])), "y"]), file=file)
        for i, row in enumerate(numbers):
            print(",".join([words[i], kinds[i], *map(str, row), str(i / 4)]), file=file)
    tokens = [numpy.array([[1 + sorted(set(column)).index(word)] for word in column]) for column in (words, kinds)]
    numpy.savez(inputs, input=numbers, input_2=tokens[0], input_3=tokens[1])


def loss(logits, labels, expected):
    probabilities = answers_in_form(numpy.load(logits).astype(numpy.float64), "softmax")
    of_labels = numpy.take_along_axis(probabilities, numpy.load(labels)[..., None], -1)
    close(-numpy.log(of_labels).mean(), numpy.float64(expected))


def has(*modules):
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            sys.exit(str(error))


COMMANDS = {"has": has, "arrays": arrays, "load": load, "save": save, "same": same, "pretrained": pretrained, "onnx": onnx, "table": table, "loss": loss}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
