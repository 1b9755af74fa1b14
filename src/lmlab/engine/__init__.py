"""Text from a model: an engine that runs many requests side by side, and generation and searches on top of it."""

from lmlab.engine.engine import Engine
from lmlab.engine.generate import Stream, continued, generate, generate_many, search_each, stream
from lmlab.engine.options import IN_VERBS, Options, as_verbs_call_them
from lmlab.engine.request import Event, Request, Token
from lmlab.engine.result import Generated

__all__ = [
    "IN_VERBS", "Engine", "Event", "Generated", "Options", "Request", "Stream", "Token", "as_verbs_call_them", "continued",
    "generate", "generate_many", "search_each", "stream",
]  # fmt: skip
