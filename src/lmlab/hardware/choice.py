"""Where to compute, in which precision and with how many threads: chosen once, from what was measured."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace

import torch

from lmlab.config import Mistake, Note
from lmlab.hardware.execution_plan import ExecutionPlan
from lmlab.hardware.kept_figures import PRECISIONS, Found, devices, find
from lmlab.hardware.precision import expect_slow_bf16
from lmlab.hardware.rates import HIDDEN, WIDTH

WORTH = 1.3  # times as fast as usual must another way be: products in bf16 must also be converted back and forth
TYPICAL_ROWS = 2048  # tokens of a step
DEVICES, CHOSEN = ("cpu", "cuda", "mps"), "auto"


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A device and how to use it in training. Scores are float32 whatever stands here."""

    device: torch.device
    dtype: torch.dtype  # of matrix products
    iteration_dtype: torch.dtype = torch.float32  # of the products inside Muon, which give a direction, not a quantity
    threads: int = 1  # at most; on a CPU
    now: int = 1  # threads to use: on a CPU those that are fastest at this moment (see `threads.at_this_moment`)
    batch: int = 1  # how many times the usual rows a step should have where seconds count
    stepping: str = "eager"  # "captured": recorded once and replayed; "compiled": that, of a compiled loss
    flops: float = 1e11  # per second, of the products that training makes: a first guess, corrected by real steps
    tokens_per_second: float | None = None  # that the plan expects of a run with a budget of seconds; None: nothing

    def __str__(self) -> str:
        threads = f", {self.now} thread{'s' * (self.now > 1)}" if self.device.type == "cpu" else ""
        return f"{self.device}, {precision_name(self.dtype)}{threads}"


def as_planned(hardware: Hardware, plan: ExecutionPlan) -> Hardware:
    """Use this hardware as a plan says."""
    return replace(
        hardware,
        dtype=PRECISIONS[plan.precision],
        iteration_dtype=PRECISIONS[plan.muon_precision],
        threads=max(hardware.threads, plan.threads),
        now=plan.threads,
        batch=plan.row_factor,
        stepping=plan.stepping,
        tokens_per_second=plan.tokens_per_second,
    )


def as_asked(hardware: Hardware, stepping: str) -> Hardware:
    """This hardware, with steps taken in the way asked for."""
    if stepping != "eager" and hardware.device.type != "cuda":
        raise Mistake(
            f"stepping {stepping} needs a CUDA device; on this one steps are eager, or say {{device}}",
            code="stepping-needs-cuda",
            device="cuda",
        )
    return replace(hardware, stepping=stepping)


def precision_name(dtype: torch.dtype) -> str:
    """As it is written in settings and records: "bf16" or "float32"."""
    return next(name for name, known in PRECISIONS.items() if known == dtype)


def choose_device(device: str = CHOSEN) -> torch.device:
    """Return the device asked for; by itself CUDA if there is any, else the CPU (mps only when asked for).

    A machine with several GPUs has cuda:0, cuda:1 and so on. Where none of them is named, a process that a launcher such as
    torchrun started takes the GPU of its LOCAL_RANK. The chosen GPU becomes the current one of this process, because kernels
    and generators without a device of their own go there.
    """
    kind, colon, index = device.partition(":")
    if device != CHOSEN and (kind not in DEVICES or (colon and not (kind == "cuda" and index.isdecimal()))):
        raise Mistake(
            f"{{device}} is auto, cpu, cuda, one GPU such as cuda:1, or mps; got {device!r}",
            code="device-unknown",
            device=None,
        )
    if torch.cuda.is_available():
        # One of torch's attention kernels is made to measure, a second or two for every new shape; the others are ready.
        torch.backends.cuda.enable_cudnn_sdp(False)
    if device == CHOSEN:
        kind = devices()[0]
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[kind]:
        raise Mistake(
            f"this torch sees no {kind.upper()} device; say {{device}}", code="device-not-there", device="cpu"
        )
    return _gpu(index) if kind == "cuda" else torch.device(kind)


def _gpu(index: str) -> torch.device:
    """Return the GPU with this index, or else that of this process, and make it the current one."""
    count, local_rank = torch.cuda.device_count(), os.environ.get("LOCAL_RANK", "")
    if index and int(index) >= count:
        raise Mistake(
            f"this torch sees {count} CUDA device{'s' * (count > 1)}, numbered from 0; got {{device}}",
            code="gpu-not-there",
            device=f"cuda:{index}",
        )
    if not index and not local_rank.isdecimal():
        return torch.device("cuda")
    gpu = torch.device("cuda", int(index or local_rank) % count)  # a launcher may show each process its own GPU alone
    torch.cuda.set_device(gpu)
    return gpu


def choose(device: str = CHOSEN, precision: str = CHOSEN) -> Hardware:
    """The device and precision asked for; what is left to us follows from what this machine was measured to do."""
    if precision not in (CHOSEN, *PRECISIONS):
        raise Mistake(
            f"{{precision}} is auto, bf16 or float32; got {precision!r}", code="precision-unknown", precision=None
        )
    place = choose_device(device)
    found = find(place.type)
    # float32 that was asked for is all of it
    iteration = faster_iteration(found, place.type) if precision != "float32" else precision
    if precision == CHOSEN:
        precision = faster_precision(found, place.type)
    elif precision == "bf16" and place.type == "cpu":
        _say_if_slow(found)
    rate = found.rate(place.type, precision)
    threads = torch.get_num_threads() if place.type == "cpu" else 1
    return Hardware(
        device=place,
        dtype=PRECISIONS[precision],
        iteration_dtype=PRECISIONS[iteration],
        threads=threads,
        now=threads,
        batch=batch_for(found, place.type, precision),
        stepping=usual_stepping(place.type),
        # Asked for although it crawls: the guess is corrected by the first real step.
        flops=max(rate.products, 1e9),
    )


def usual_stepping(device: str) -> str:
    """How a step is taken where nothing is set: recorded once and replayed on a GPU, else kernel by kernel."""
    return "captured" if device == "cuda" else "eager"


def _say_if_slow(found: Found) -> None:
    """That bf16 was asked for where the processor is not made for it; crawling, a step may take minutes."""
    expect_slow_bf16()
    rate, plain = (found.rate("cpu", precision).products for precision in ("bf16", "float32"))
    if 2 * rate < plain:
        slower = f"{plain / rate:.0f} times slower than" if rate else "hundreds of times slower than"
        warnings.warn(
            f"products in bf16 are {slower} in float32 on this processor; without a precision the faster is taken",
            Note,
            stacklevel=3,
        )


def batch_for(found: Found, device: str, precision: str) -> int:
    """Four times the rows where asking for a typical product takes longer than the product itself: they come for nothing."""
    product_s = 2.0 * TYPICAL_ROWS * WIDTH * HIDDEN / max(found.rate(device, precision).products, 1.0)
    return 4 if found.device(device).request_s > product_s / 4 else 1


def faster_precision(found: Found, device: str) -> str:
    """bf16 where its products are clearly faster, else float32."""
    gain = found.rate(device, "bf16").products / found.rate(device, "float32").products
    return "bf16" if gain >= WORTH else "float32"


def faster_iteration(found: Found, device: str) -> str:
    """The precision in which Muon's products are faster, at sizes that keep the device busy; nothing has to be exact there."""
    return max(PRECISIONS, key=lambda precision: found.rate(device, precision).iteration)
