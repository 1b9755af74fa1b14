"""What the server allows a client to ask for."""

from __future__ import annotations

from dataclasses import dataclass

from lmlab.config import Mistake


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one server. A request beyond one is refused with the status that the comment names."""

    prompt_tokens: int = 1 << 17  # 400: of one prompt
    max_tokens: int = 1 << 14  # 400: of one completion
    completions: int = 1024  # 400: prompts times best_of, of one HTTP request
    queued: int = 4096  # 429: completions that wait or run, of all clients together
    body_bytes: int = 1 << 22  # 413
    body_s: float = 30.0  # 408: to send the body
    request_s: float = 600.0  # 503: from the body to the last token
    scored_bytes: int = 1 << 20  # 400: of a text whose bits per byte are certified
    logprobs: int = 100  # 400: alternatives of a token
    answered: int = 1 << 21  # 400: log-probabilities and echoed tokens of one answer; each takes some hundred bytes
    stops: int = 32  # 400: stop strings; all of them are looked for after every token
    stop_characters: int = 256  # 400: of a stop string

    def __post_init__(self) -> None:
        of_verbs = {"max_tokens": self.max_tokens, "max_prompt": self.prompt_tokens, "queue": self.queued}
        for name, value in (of_verbs | {"timeout": self.request_s}).items():
            if not value > 0:
                raise Mistake(f"{{{name}}} is above 0; got {value}", code="limit-not-above-zero", **{name: None})
