"""Clients that other people wrote work with the server as they are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import lmlab

openai = pytest.importorskip("openai")


@pytest.fixture
def official(client: Any) -> Any:
    return openai.OpenAI(base_url=f"{client.url}/v1", api_key="none", max_retries=0)


def test_the_openai_client_completes_streams_and_reads_log_probabilities(official: Any, runs: Any) -> None:
    answer = official.completions.create(
        model="gpt", prompt="the cat", max_tokens=6, echo=True, logprobs=2, temperature=0
    )
    choice = answer.choices[0]
    assert (
        choice.text
        == "the cat" + lmlab.generate(runs["gpt"], "the cat", method="greedy", tokens=6, device="cpu")[0].text
    )
    assert all(logp <= 0 for logp in choice.logprobs.token_logprobs)
    stream = official.completions.create(
        model="gpt", prompt="the cat", max_tokens=6, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    events = list(stream)
    assert "the cat" + "".join(event.choices[0].text for event in events[:-1]) == choice.text
    assert events[-1].usage.completion_tokens == 6
    assert [model.id for model in official.models.list()] == ["gpt", "lstm", "ngram", "words"]


def test_the_openai_client_can_leave_a_stream(official: Any, client: Any) -> None:
    with official.completions.create(model="lstm", prompt="a", max_tokens=16_000, stream=True) as stream:
        next(iter(stream))
    while "lmlab_requests_running 0.0" not in client.ask("/metrics")[1]:
        pass


def test_the_openai_client_raises_the_error_of_the_server(official: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        official.completions.create(model="gpt", prompt="a", temperature=-1)
    assert refused.value.param == "temperature"


TASKS = {
    "rolling": """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: bits_per_byte}]
""",
    "choice": """
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
target_delimiter: ""
metric_list: [{metric: acc}]
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt", "lstm", "ngram"])
def test_lm_eval_finds_the_bits_per_byte_and_choices_of_the_lab(
    client: Any, runs: Any, tmp_path: Path, name: str
) -> None:
    """Needs lm-eval with its extra "api", which no extra of the lab installs: it brings a hundred packages along."""
    pytest.importorskip("lm_eval")
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    texts = ["the cat sat on a mat", "über 世界 läuft", "rain falls down. " * 30]
    questions = [
        {"question": "the cat", "choices": [" sat", " über", " xyz", " rain"], "answer": i % 4} for i in range(8)
    ]
    rows = {"rolling": [{"text": text} for text in texts], "choice": questions}
    for task, lines in rows.items():
        data = tmp_path / f"{task}.jsonl"
        data.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        head = f"task: {task}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {data}}}}}\ntest_split: test"
        (tmp_path / f"{task}.yaml").write_text(head + TASKS[task], encoding="utf-8")
    found = simple_evaluate(
        model="local-completions",
        model_args={
            "model": name,
            "base_url": f"{client.url}/v1/completions",
            "tokenizer_backend": "remote",
            "max_length": 4096,
        },
        tasks=list(rows),
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
    )["results"]
    bits = math.fsum(lmlab.score(runs[name], texts, device="cpu").bits) / sum(len(text.encode()) for text in texts)
    assert found["rolling"]["bits_per_byte,none"] == pytest.approx(bits, rel=1e-6)
    right = 0
    for row in questions:
        scored = lmlab.score(runs[name], [row["question"] + choice for choice in row["choices"]], device="cpu")
        right += min(range(4), key=lambda i: scored[i].bits) == row["answer"]
    assert found["choice"]["acc,none"] == right / len(questions)
