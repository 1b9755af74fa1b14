"""Mistakes: what the user can mend, said in one line that names the setting and what would be right."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral

LISTED = 40  # names that still make a readable line
MOST_SEED = 2**32 - 1  # lmlab multiplies seeds by step numbers, which must fit into 63 bits


class Mistake(ValueError):
    """What the user can mend. Anything else that goes wrong is ours.

    A setting that the message speaks of stands in it as {name} and is given by keyword, with the value that would be right
    (None: only its name): `Mistake("this machine has no GPU; say {device}", device="cpu")`. In Python the message then
    reads `device='cpu'`; the command line, which alone knows about dashes, writes `--device cpu` (see `written`).

    code: the kind of mistake in a few words with hyphens, such as "device-not-there". It stays the same when the message
    changes, so a program or a test can tell mistakes apart. Code of others, such as a model's, may leave it out.
    """

    def __init__(self, message: str, /, *, code: str = "", **settings: object) -> None:
        self.template, self.code, self.settings = message, code, settings
        super().__init__(self.written(_as_in_python))

    def written(self, style: Callable[[str, object], str]) -> str:
        """The message with every setting written by `style(name, value)`."""
        return re.sub(
            r"\{(\w+)\}",
            lambda found: style(found[1], self.settings[found[1]]) if found[1] in self.settings else found[0],
            self.template,
        )

    def called(self, names: Mapping[str, str]) -> Mistake:
        """The same, for someone who calls some of its settings otherwise."""
        template = re.sub(r"\{(\w+)\}", lambda found: f"{{{names.get(found[1], found[1])}}}", self.template)
        settings = {names.get(name, name): value for name, value in self.settings.items()}
        return Mistake(template, code=self.code, **settings)


def _as_in_python(name: str, value: object) -> str:
    return name if value is None else f"{name}={value!r}"


def about_a_file(error: OSError) -> str:
    """What went wrong with which file, and what helps where that is known."""
    advice = {errno.ENOSPC: "; make room on that disk", errno.EROFS: ", so nothing can be written there"}
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror}{where}{advice.get(error.errno or 0, '')}"


def nearest(name: str, known: Iterable[str], least: float = 0.5) -> str:
    """A sentence part that helps after a misspelling: `did you mean "x"?`, or the list of what there is.

    least: how alike a name must be, from 0 to 1, as `difflib` counts it.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=least)
    if close:
        return f"did you mean {close[0]!r}?"
    if len(names) > LISTED:
        return f"there are {len(names)}, from {names[0]} to {names[-1]}"
    return f"there are: {', '.join(names) or 'none'}"


def checked_seed(seed: object) -> int:
    """A seed as Python's own whole number; a Mistake unless every generator of the lab takes it."""
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= int(seed) <= MOST_SEED:
        raise Mistake(
            f"{{seed}} is a whole number from 0 to {MOST_SEED}; got {seed!r}", code="seed-out-of-range", seed=None
        )
    return int(seed)
