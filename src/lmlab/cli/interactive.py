"""`lmlab generate --interactive`: reads prompts until Ctrl-D."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lmlab.config import Mistake, nearest
from lmlab.learn.interrupt import killed
from lmlab.page.raw_bytes import say_what_bytes_are
from lmlab_derive.shared.plain import visible

if TYPE_CHECKING:
    from lmlab.engine.conversation import Conversation

HELP = """Type a text and it is continued. Ctrl-C stops a text, Ctrl-D leaves. Also:
  /retry              another continuation of the same text
  /more               go on from where it ended
  /temperature 0.7    change a setting: tokens, temperature, top-k, top-p, min-p, method, seed
  /settings           what they are now
  /help               this
  /quit               leave"""
LEAVING = ("/quit", "/exit", "/q", "/bye")
NAMES = {"tokens": "max_tokens", "beam": "beam_width"}  # names of the command line


def converse(conversation: Conversation, read: Callable[[str], str] = input) -> None:
    """Read prompts and commands until the end of input.

    read: reads one line, as `input` does, with its line editing and history.
    """
    someone_types = sys.stdin.isatty()
    if someone_types:
        import readline  # noqa: F401  (gives `input` line editing and history)

        print(HELP)
    while True:
        try:
            line = read("> " if someone_types else "")
        except (EOFError, KeyboardInterrupt):
            if someone_types:
                print()
            _end_if_killed()
            return
        if line.strip() in LEAVING:
            return
        try:
            _obey(conversation, line)
        except KeyboardInterrupt:  # ends only this text
            print()
            _end_if_killed()
        except Mistake as error:
            print(f"lmlab: {' '.join(str(error).split())}", file=sys.stderr)


def _end_if_killed() -> None:
    """Raise KeyboardInterrupt if the process received a signal to terminate, which arrives as Ctrl-C does."""
    if killed():
        raise KeyboardInterrupt


def _obey(conversation: Conversation, line: str) -> None:
    command, _, value = line[1:].partition(" ")
    if not line.startswith("/"):
        if line:
            _write(line, conversation.answer(line))
    elif command == "retry":
        pieces = conversation.retry()
        _write(conversation.prompt or "", pieces)
    elif command == "more":
        _write("", conversation.more())
    elif command == "settings":
        shown = {name: getattr(conversation.options, NAMES.get(name, name)) for name in _settings()}
        print("  ".join(f"{name.replace('_', '-')} {value}" for name, value in shown.items() if value is not None))
    elif command == "help":
        print(HELP)
    else:
        name = command.replace("-", "_")
        if name not in _settings():
            known = ["retry", "more", "settings", "help", "quit", *(n.replace("_", "-") for n in _settings())]
            raise Mistake(f"there is no /{command}; {nearest(command, known)}", code="chat-command-unknown")
        conversation.change(NAMES.get(name, name), value)


def _settings() -> list[str]:
    return ["tokens", "temperature", "top_k", "top_p", "min_p", "method", "seed"]


def _write(before: str, pieces: Iterator[str]) -> None:
    """Print the text as it is generated, with the prompt before its first piece."""
    written = []
    for piece in pieces:
        written.append(piece)
        print(visible(before + piece) if sys.stdout.isatty() else before + piece, end="", flush=True)
        before = ""
    print() if sys.stdin.isatty() else print("\n")  # in a file, an empty line ends each text
    say_what_bytes_are(written)
