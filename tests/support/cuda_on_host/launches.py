# SPDX-License-Identifier: Apache-2.0
"""usage: launches.py IN OUT: a CUDA source as C++.

kernel<T><<<grid, block, shared, stream>>>(arguments...) becomes a call of cuda_on_host::launch(). Variables that a block
shares are poisoned when its first thread comes to them.
"""
import re
import sys


def kernel_begin(text, end):
    """Where the expression that ends before `end` begins: a name and its template arguments."""
    at = end
    while text[at - 1].isspace():
        at -= 1
    if text[at - 1] == ">":
        depth = 0
        while True:
            at -= 1
            depth += (text[at] == ">") - (text[at] == "<")
            if depth == 0:
                break
    return re.search(r"[\w:]+\Z", text[:at]).start()


def translated(text):
    out = []
    done = 0
    while (opening := text.find("<<<", done)) >= 0:
        begin = kernel_begin(text, opening)
        closing = text.index(">>>(", opening)
        kernel = " ".join(text[begin:opening].split())
        launch = text[opening + 3 : closing]
        out.append(text[done:begin])
        out.append(f"::lockstep::cuda_on_host::launch(\"{kernel}\", [=](auto... a) {{ {kernel}(a...); }}, {launch})")
        done = closing + 3
    return "".join(out) + text[done:]


def poisoned(text):
    def with_poison(declaration):
        names = re.sub(r"\[[^]]*\]", "", declaration[1]).split(",")
        names = [re.search(r"\w+\Z", name.strip())[0] for name in names]
        calls = [f" ::lockstep::cuda_on_host::poison_shared(&{name}, sizeof({name}));" for name in names]
        return declaration[0] + "".join(calls)

    return re.sub(r"__shared__ ([^;]+);", with_poison, text)


source, target = sys.argv[1:]
with open(source) as file:
    text = file.read()
with open(target, "w") as file:
    file.write(f'#line 1 "{source}"\n' + poisoned(translated(text)))
