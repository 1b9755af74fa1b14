"""Is a training step fast? Steps of gpt, bert, translator, gru and rnn beside the same step of another library.

    python bench/bench_training.py [--device cuda] [--only gpt,bert] [--write]

Both sides run in this process, in turns, with the same size, batch, precision and AdamW; the median of the rounds' ratios
counts. bf16 is measured where the processor computes faster in it.
"""

from __future__ import annotations

import torch
import transformers

import steps_bert
import steps_gpt
import steps_recurrent
import steps_translator
from lmlab.hardware.choice import choose
from lmlab.hardware.memory import keep_memory
from record import Recorder, arguments
from steps import PRECISIONS
from timing import in_turns, milliseconds

MODELS = {
    "gpt": steps_gpt.cases,
    "recurrent": steps_recurrent.cases,
    "bert": steps_bert.cases,
    "translator": steps_translator.cases,
}
ROUNDS, COLD, LIMIT_S = 25, 4, 8.0


def main() -> None:
    """Measure every case."""
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--only", default=",".join(MODELS), help=f"of {', '.join(MODELS)}")
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    transformers.utils.logging.set_verbosity_error()
    keep_memory()  # for both sides, which share this process
    gpu = torch.cuda.get_device_name() if asked.device == "cuda" else None
    name = "training" if gpu is None else "training-gpu"
    record = Recorder(name, "fast", asked, peers=("transformers",), gpu=gpu)
    has_bf16 = gpu is not None or choose("cpu").dtype == torch.bfloat16
    precisions = PRECISIONS if has_bf16 else PRECISIONS[:1]
    rounds, cold = (2, 1) if asked.quick else (ROUNDS, COLD)
    for model in asked.only.split(","):
        for case in MODELS[model](asked.device, precisions, asked.quick):
            ours, theirs = case.make()
            works = {"ours": ours, "theirs": theirs}
            times = in_turns(
                works, rounds=rounds, cold=cold, repeats=case.repeats, limit_s=LIMIT_S, device=asked.device
            )
            sides = milliseconds(times["ours"]), milliseconds(times["theirs"])
            record.compare(case.key, case.what, *sides, "ms", peer=case.peer, least=case.least)


if __name__ == "__main__":
    main()
