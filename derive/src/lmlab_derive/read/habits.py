"""What people write by habit: e^x, tanh^2(x), log x, ab for a product, max_i x_i, delta_ij."""

from __future__ import annotations

from functools import reduce

from lmlab_derive.functions import FUNCTIONS, NAMES
from lmlab_derive.read.cursor import BARS, refusal
from lmlab_derive.read.from_latex_and_unicode import GREEK
from lmlab_derive.read.notation import NotationParser
from lmlab_derive.read.ranks import is_square, rank_of
from lmlab_derive.read.tokens import Token
from lmlab_derive.small_formulas import ONE, call, power, times
from lmlab_derive.text import operand_text, to_text
from lmlab_derive.tree import Call, Compare, Letter, Name, Node, Table, constant_value

_LARGE = ("Σ", "Π", "max_", "min_")  # signs that take all that follows


class HabitParser(NotationParser):
    """Expressions as they are written by hand. Whatever is read so is shown again in the signs of the language."""

    def raised(self, base: Node, exponent: Node, token: Token) -> Node:
        """A^{-1} is an inverse on paper, and A^2 of a square matrix may be a product: ** is entry by entry."""
        if not token.paper or not is_square(base, self.scope):
            return super().raised(base, exponent, token)
        if constant_value(exponent) == -1:
            self.forgave = True
            return call("inv", base)
        text, power_ = operand_text(base), operand_text(exponent)
        wanted = f"{text} @ {text} for the product" if power_ == "2" else f"{text} @ ... @ {text} for a product"
        raise refusal(
            token, f"{text}^{power_} can be read in two ways; write {wanted}, {text}**{power_} entry by entry"
        )

    def bars(self) -> Node | None:
        """|x| and ‖x‖; also ‖x‖_1 and ‖x‖_inf of vectors. |A| of a square matrix may be a determinant."""
        token, found = self.next, super().bars()
        if not isinstance(found, Call):
            return found
        (inner,) = found.args
        if found.function == "abs" and is_square(inner, self.scope):
            text = to_text(inner)
            raise refusal(token, f"|{text}| can be read in two ways; write det({text}), or abs({text}) entry by entry")
        which = self.next.text if self.next.glued and found.function == "norm" else ""
        if which in ("_1", "_inf"):
            if rank_of(inner, self.scope) != 1:
                raise self.error("write the norm of a matrix with sum, max and abs")
            self.at += 1
            return call("sum" if which == "_1" else "max", call("abs", inner))
        return found

    def habit(self, token: Token, following: str) -> Node | None:
        """What a name begins that is neither a name nor a call; None where it is none of these."""
        start, outer = self.at, self.forgave
        self.forgave = True
        found = self._power_of_e(token) or self._without_brackets(token) or self._of_letters(token)
        found = found or self._letters_beside(token, following)
        if found is None:
            self.at, self.forgave = start, outer
        return found

    def _power_of_e(self, token: Token) -> Node | None:
        """e^x."""
        if token.text != "e":
            return None
        self.at += 1
        exponent = self._nested(self._signed) if self.take("**") else ONE
        if is_square(exponent, self.scope):
            text = to_text(exponent)
            raise refusal(token, f"e^{text} of a matrix can be read in two ways; exp({text}) is entry by entry")
        return call("exp", exponent)

    def _without_brackets(self, token: Token) -> Node | None:
        """tanh^2(x), log x and log Σ_i e^x_i: of all that follows, up to a sum or a relation."""
        function = FUNCTIONS.get(token.text)
        if function is None or function.arguments != 1 or function.takes_sizes:
            return None
        self.at += 1
        exponent = self.next.text if self.take("**") else ""
        if exponent and exponent not in ("2", "3", "4"):
            return None
        self.at += bool(exponent)
        if exponent and self.next.text == "(":
            return power(self._call(token), int(exponent))
        opens = self.next.text in BARS and self.next.text[0] != self.within[:1]
        if not opens and (self.next.kind not in ("name", "number") or self.next.text in self.stops):
            return None
        start = self.at
        found = call(token.text, self._nested(lambda: self.sum_of_products(10)))
        if not self.tokens[start].text.startswith(_LARGE) and self._two_ways(start + 1):
            raise refusal(token, f"{token.text} without brackets can be read in two ways here; write {token.text}(...)")
        return power(found, int(exponent)) if exponent else found

    def _two_ways(self, start: int) -> bool:
        """Whether sin x cos y or log x / y was read: a quotient, or one more function behind the first factor."""
        depth = 0
        for token in self.tokens[start : self.at]:
            depth += token.nesting
            if depth == 0 and (token.text == "/" or (token.text in NAMES and token.text not in self.known)):
                return True
        return False

    def _of_letters(self, token: Token) -> Node | None:
        """max_i x_i over all i, and delta_ij."""
        base, _, letters = token.text.partition("_")
        if base in ("max", "min") and len(letters) == 1 and letters not in self.known:
            self.at += 1
            outer = dict(self.letters)
            self.letters[letters] = 1
            body = self._nested(lambda: self.sum_of_products(10))
            self.letters = outer
            witness = self.witness(body, letters)
            if witness is None:
                raise refusal(token, f"the range of {letters} is not clear; write {base}(x) of an array")
            return Call(base, (Table(body, ((Letter(letters), witness),)),), column=token.column)
        if base == "delta" and len(letters) == 2:
            if not set(letters) <= set(self.letters):
                raise refusal(
                    token, f"{token.text} needs {' and '.join(letters)} to be positions, as in x[{letters[0]}]"
                )
            self.at += 1
            first, second = (Letter(letter, self.letters[letter]) for letter in letters)
            return Compare("==", first, second, column=token.column)
        return None

    def _letters_beside(self, token: Token, following: str) -> Node | None:
        """ab for the product of two numbers."""
        text = token.text
        names = [GREEK.get(letter, letter) for letter in text]
        is_word = text in NAMES or text == "pi" or following == "(" or (text[0] == "d" and following == "/")
        if len(set(text)) != len(text) or len(text) < 2 or is_word or not all(map(self.is_number, names)):
            return None
        self.at += 1
        factors: list[Node] = [Name(name, column=token.column) for name in names]
        return reduce(times, factors)
