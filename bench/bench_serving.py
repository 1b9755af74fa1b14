"""Does the server keep up? Many clients over HTTP beside one after the other, and beside the same prompts in one process.

    python bench/bench_serving.py [--device cuda] [--seconds 120] [--write]

`lmlab serve` runs in a process of its own, the clients in this one. Every answer is compared with the text that the engine
writes for the same prompt alone. The model is a gpt after one step of training (6 layers of width 192; with --device cuda the
size of GPT-2 in bf16), because speed does not depend on what it learned.
"""

from __future__ import annotations

import asyncio
import json
import os
import pydoc_data.topics
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import lmlab
from record import Recorder, arguments

CLIENTS = 64
NEW = {"cpu": 64, "cuda": 256}  # tokens of a completion
SETTINGS = {"cpu": {"layers": 6, "width": 192, "context": 256}, "cuda": {"layers": 12, "width": 768, "context": 1024}}
KINDS = ("gpt", "lstm", "ngram")  # served on a CPU
SETTLED = 20  # seconds after which memory should stay as it is


@dataclass
class Load:
    """This class is what a number of clients got in some seconds."""

    tokens: int = 0
    answers: int = 0
    wrong: int = 0
    seconds: float = 0.0
    first_token_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Tokens of completions per second."""
        return self.tokens / self.seconds


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: dict[str, Any]) -> Any:
    """Send a completion request over an open connection; returns the document of the answer."""
    data = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    status = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert " 200 " in status.splitlines()[0], status
    length = re.search(r"content-length: (\d+)", status)
    assert length is not None, status
    return json.loads(await reader.readexactly(int(length[1])))


async def first_token(port: int, body: dict[str, Any]) -> float:
    """Return the seconds until the first token of a stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data, begun = json.dumps({**body, "stream": True}).encode(), time.perf_counter()
    writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: b\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    await reader.readuntil(b"data: ")
    found = time.perf_counter() - begun
    writer.close()
    return found


async def client(
    port: int, number: int, clients: int, wanted: list[tuple[str, str]], body: Any, end: float, load: Load
) -> None:
    """Ask again and again until the time is over, and compare each answer with what the engine wrote."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = number
    while time.perf_counter() < end:
        prompt, text = wanted[turn % len(wanted)]
        turn += clients
        answer = await ask(reader, writer, {**body, "prompt": prompt})
        load.tokens += answer["usage"]["completion_tokens"]
        load.answers += 1
        load.wrong += answer["choices"][0]["text"] != text
    writer.close()


async def loaded(port: int, clients: int, wanted: list[tuple[str, str]], body: Any, seconds: float) -> Load:
    """Let so many clients work for some seconds."""
    load, begun = Load(), time.perf_counter()
    work = [client(port, i, clients, wanted, body, begun + seconds, load) for i in range(clients)]
    await asyncio.gather(*work)
    load.seconds = time.perf_counter() - begun
    if clients > 1:
        streams = [first_token(port, {**body, "prompt": prompt}) for prompt, _ in wanted[:clients]]
        load.first_token_s = list(await asyncio.gather(*streams))
    return load


@contextmanager
def served(runs: list[Path], device: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own; yields its port and its process id."""
    more = ["--precision", "bf16"] if device == "cuda" else []
    words = [sys.executable, "-m", "lmlab", "serve", *map(str, runs), "--port", "0", "--device", device, *more]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://127.0.0.1:(\d+)/v1", line):
                break
        else:
            raise RuntimeError("the server did not start")
        try:
            yield int(found[1]), process.pid
        finally:
            process.terminate()
            process.wait()


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


async def with_memory(port: int, pid: int, wanted: Any, body: Any, seconds: float) -> tuple[Load, list[float]]:
    """`loaded` by all clients, and the server's memory once a second."""
    task, memory = asyncio.ensure_future(loaded(port, CLIENTS, wanted, body, seconds)), []
    while not task.done():
        await asyncio.sleep(1.0)
        memory.append(resident_mib(pid))
    return task.result(), memory


def prompts() -> list[str]:
    """Return prompts of different lengths."""
    text = "\n".join(pydoc_data.topics.topics.values())
    return [text[1000 * i : 1000 * i + 20 + i % 60] for i in range(2 * CLIENTS)]


def measure(record: Recorder, device: str, seconds: float, folder: Path) -> None:
    """Measure every kind on a CPU, or gpt on a GPU."""
    text, new = folder / "text.txt", NEW[device]
    text.write_text("\n".join(pydoc_data.topics.topics.values()), encoding="utf-8")
    runs = []
    for kind in KINDS if device == "cpu" else KINDS[:1]:
        options: dict[str, Any] = {} if kind == "ngram" else {"budget": "1steps"}
        settings = SETTINGS[device] if kind == "gpt" else {}
        tokenizer = "char" if device == "cpu" else "bpe:4096"
        runs.append(folder / kind)
        lmlab.train(kind, text, out=runs[-1], settings=settings, tokenizer=tokenizer, device=device, **options)
    for run in runs:
        precision = "bf16" if device == "cuda" else "float32"
        fixed = {"method": "greedy", "tokens": new, "device": device, "precision": precision}
        alone = [
            lmlab.generate(run, prompt, **fixed)[0].text for prompt in prompts()[: 8 if device == "cuda" else None]
        ]
        begun = time.perf_counter()
        lmlab.generate_many(run, prompts()[:CLIENTS], **fixed)
        begun, offline = time.perf_counter(), lmlab.generate_many(run, prompts(), **fixed)
        offline_rate = sum(len(each[0].ids) for each in offline) / (time.perf_counter() - begun)
        # bf16 rounds otherwise beside neighbours, so on a GPU what was written side by side is the reference
        texts = [each[0].text for each in offline] if device == "cuda" else alone
        body = {"model": run.name, "max_tokens": new, "temperature": 0}
        wanted = list(zip(prompts(), texts, strict=True))
        with served([run], device) as (port, pid):
            asyncio.run(loaded(port, CLIENTS, wanted, body, min(3.0, seconds)))
            one = asyncio.run(loaded(port, 1, wanted, body, min(10.0, seconds)))
            many, memory = asyncio.run(with_memory(port, pid, wanted, body, seconds))
        what = f"`lmlab serve` of {run.name}, {CLIENTS} clients, {new} tokens each"
        record.compare(
            f"{device}-{run.name}-clients", what, [many.rate], [one.rate], "tokens/s", peer="one client",
            more_is_better=True, least=3.0 if run.name == "gpt" else 1.0,
        )  # fmt: skip
        record.compare(
            f"{device}-{run.name}-offline", what, [many.rate], [offline_rate], "tokens/s", peer="in one process",
            more_is_better=True, least=0.8 if device == "cuda" else 0.0,
        )  # fmt: skip
        share = many.wrong / many.answers
        record.add(
            f"{device}-{run.name}-wrong",
            f"{what}: answers unlike those alone",
            share,
            "",
            most=0.0 if device == "cpu" else 1.0,
        )
        for name, quantile in (("median", 0.5), ("99th percentile", 0.99)):
            found = float(np.quantile(many.first_token_s, quantile)) * 1000
            record.add(
                f"{device}-{run.name}-first-{quantile}",
                f"{what}: first token when all begin at once, {name}",
                found,
                "ms",
            )
        settled = memory[SETTLED:]
        if settled:
            growth = max(settled) / min(settled) - 1
            record.add(
                f"{device}-{run.name}-memory", f"{what}: change of memory after {SETTLED} s", growth, "", most=0.05
            )


def main() -> None:
    """Measure on the device that was asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=120.0, help="of load on each model")
    asked = parser.parse_args()
    seconds = 3.0 if asked.quick else asked.seconds
    gpu = None
    if asked.device == "cuda":
        import torch

        gpu = torch.cuda.get_device_name()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with tempfile.TemporaryDirectory(prefix="lmlab-") as folder:
        measure(
            Recorder(f"serving{'-gpu' if gpu else ''}", "fast", asked, gpu=gpu), asked.device, seconds, Path(folder)
        )


if __name__ == "__main__":
    main()
