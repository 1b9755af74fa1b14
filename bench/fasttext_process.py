"""Train fastText on a table in a process of its own, whose processor time is all its own.

    python bench/fasttext_process.py TABLE NGRAMS LR EPOCH SEED THREADS

It reads the table with the lab's reader, divides the texts into the lab's words, writes them to a file and trains. It prints
one JSON object: processor seconds and seconds of all that, and which validation and test examples it labels right.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import fasttext

from lmlab.text.labelled import read_labelled
from lmlab.text.plain_words import words_of_each


def trained(table: str, path: Path, ngrams: int, rate: float, epochs: int, seed: int, threads: int) -> Any:
    """Return the model, trained on the file that is written to `path`."""
    part = read_labelled(table).parts["train"]
    labelled = zip(words_of_each(part.texts), part.labels_B.tolist(), strict=True)
    lines = [f"__label__{label} {words}\n" for words, label in labelled]
    random.Random(seed).shuffle(lines)  # it reads a file as it is, and one sorted by label teaches it nothing
    path.write_text("".join(lines), encoding="utf-8")
    return fasttext.train_supervised(
        str(path), wordNgrams=ngrams, lr=rate, epoch=epochs, thread=threads, seed=seed, verbose=0
    )


def main() -> None:
    """Train, label and print."""
    table, ngrams, rate, epochs, seed, threads = sys.argv[1:]
    cpu_s, seconds = time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        model = trained(table, path, int(ngrams), float(rate), int(epochs), int(seed), int(threads))
    found = {"cpu_s": time.process_time() - cpu_s, "seconds": time.perf_counter() - seconds}
    parts = read_labelled(table).parts
    for name in ("valid", "test"):
        labels, _ = model.predict(words_of_each(parts[name].texts))
        said = [of_one[0].removeprefix("__label__") if len(of_one) else None for of_one in labels]
        right = [one == str(label) for one, label in zip(said, parts[name].labels_B.tolist(), strict=True)]
        found[name] = right
    print(json.dumps(found))


if __name__ == "__main__":
    main()
