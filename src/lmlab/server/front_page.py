"""The page at /: which models are served, and how to ask them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmlab_derive.shared.html import card, cards, document, escape, facts

if TYPE_CHECKING:
    from lmlab.server.served_model import ServedModel

ROUTES = {
    "POST /v1/completions": "text from a prompt, streamed or whole; with echo, the log-probability of every token",
    "POST /v1/score": "bits per byte of a text, with interval and certificate",
    "GET /v1/models": "the models below",
    "POST /tokenize, /detokenize": "text to token ids and back",
    "GET /tokenizer_info": "special tokens",
    "GET /openapi.json": "this interface, for programs",
    "GET /health, /version, /metrics": "for operators",
}


def front_page(models: Sequence[ServedModel]) -> str:
    """Return the page as HTML."""
    first = models[0].name
    shown = cards(
        card(
            escape(served.name),
            facts(
                {
                    "kind": escape(served.run.record.model.name),
                    "tokenizer": escape(served.tokenizer.spec),
                    "vocabulary": f"{served.model.vocab_size:,}",
                    "parameters": f"{served.model.parameters_count:,}",
                    "context": escape(str(served.model.policy)),
                }
            ),
        )
        for served in models
    )
    routes = facts({f"<code>{escape(route)}</code>": escape(about) for route, about in ROUTES.items()})
    example = (
        "from openai import OpenAI\n\n"
        'client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")\n'
        f"answer = client.completions.create(model={first!r}, prompt='Once', max_tokens=40, logprobs=3)\n"
        "print(answer.choices[0].text)"
    )
    body = f"<h1>Language models, served by lmlab</h1>{shown}<h2>Routes</h2>{routes}"
    return document("lmlab", f"<main>{body}<h2>From Python</h2><pre><code>{escape(example)}</code></pre></main>")
