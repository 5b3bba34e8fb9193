# SPDX-License-Identifier: Apache-2.0
"""Tables as scikit-learn encodes them, and its figures of a regression. Needs scikit-learn beside torch."""

import numpy as np
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

TRAIN = """age,town,rooms,price,height
22,Ulm,3,7.25,
,Bonn,1,71.2833,1.8
26.5,Ulm,3,,1.6
35,,1,53.1,1.75
35,Bonn,NA,8.05,nan
,Kiel,3,8.4583,1.9
54,Köln,?,51.8625,2.05
2,null,3,21.075,1.71
"""
EVAL = """height,price,age,rooms,town
1.5,,30,2,Ulm
,8,?,9,Rom
"""
NUMBERS = ("age", "rooms", "price", "height")
ORDER = ("age", "town", "rooms", "price", "height")
BLANK = ("", "NA", "?", "nan", "null")


def columns_of(text):
    lines = [line.split(",") for line in text.splitlines()]
    table = {}
    for name, *cells in zip(*lines):
        if name in NUMBERS:
            values = [[np.nan if cell in BLANK else float(cell)] for cell in cells]
            table[name] = np.array(values)
        else:
            table[name] = np.array([[None if cell in BLANK else cell] for cell in cells], dtype=object)
    return table


def encoded():
    train, evaluation = columns_of(TRAIN), columns_of(EVAL)
    parts = {"train": [], "eval": []}
    for name in ORDER:
        if name in NUMBERS:
            imputer, then, missing = SimpleImputer(strategy="median"), StandardScaler(), np.nan
        else:
            imputer = SimpleImputer(strategy="most_frequent", missing_values=None)
            then, missing = OneHotEncoder(handle_unknown="ignore", sparse_output=False), None
        blank = MissingIndicator(missing_values=missing, features="missing-only", error_on_new=False).fit(train[name])
        filled = imputer.fit_transform(train[name])
        then.fit(filled)
        for split, table in (("train", train), ("eval", evaluation)):
            parts[split].append(then.transform(imputer.transform(table[name])).astype(float))
            parts[split].append(blank.transform(table[name]).astype(float))
    return {split: np.hstack(each).tolist() for split, each in parts.items()}


def figures(targets, answers):
    targets, answers = np.array(targets, dtype=float), np.array(answers, dtype=float)
    return {"targets": targets.tolist(), "answers": answers.tolist(), "r2": float(r2_score(targets, answers)),
            "rmse": float(np.sqrt(mean_squared_error(targets, answers))),
            "mae": float(mean_absolute_error(targets, answers))}


def cases():
    rows = encoded()
    random = np.random.default_rng(3)
    many = random.normal(1e6, 3, (40, 1))
    return {
        "encoding": {"table": {"train": TRAIN, "eval": EVAL, "encoded_train": rows["train"], "encoded_eval": rows["eval"]}},
        "figures": {
            "one number": figures([[3], [-0.5], [2], [7]], [[2.5], [0.0], [2], [8]]),
            "several numbers": figures([[0.5, 1], [-1, 1], [7, -6]], [[0, 2], [-1, 2], [8, -5]]),
            "far from zero": figures(many, many + random.normal(0, 1, many.shape)),
            "equal targets": figures([[2], [2], [2]], [[2], [2], [3]]),
            "equal targets, equal answers": figures([[2], [2]], [[2], [2]]),
        },
    }
