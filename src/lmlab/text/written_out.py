"""Numbers, dates and times written out in English, German and French: pairs of sentences made here, as many as are wanted.

Each means the same in all three and is put together in another order: 21 is twenty-one, einundzwanzig (one and twenty) and
vingt et un; 7:35 is twenty-five to eight, fünf nach halb acht and huit heures moins vingt-cinq.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator

LANGUAGES = ("en", "de", "fr")
Sentence = tuple[str, str, str]  # in the order of LANGUAGES


def _words(text: str) -> list[str]:
    return text.split()


EN = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
DE = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn"
FR = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit"
SMALL_EN, SMALL_DE, SMALL_FR = [*_words(EN), "nineteen"], [*_words(DE), "neunzehn"], [*_words(FR), "dix-neuf"]
TENS_EN = _words("- - twenty thirty forty fifty sixty seventy eighty ninety")
TENS_DE = _words("- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
TENS_FR = _words("- - vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt")
ORDINALS_EN = _words(
    "- first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth"
)
ORDINALS_DE = {1: "erste", 3: "dritte", 7: "siebte", 8: "achte"}
MONTHS = (
    _words("January February March April May June July August September October November December"),
    _words("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
    _words("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
)
DAYS = (
    _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    _words("Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"),
    _words("lundi mardi mercredi jeudi vendredi samedi dimanche"),
)
PARTS_OF_DAY = (  # and the hours it has
    ("in the morning", "morgens", "du matin", range(1, 12)),
    ("in the afternoon", "nachmittags", "de l'après-midi", range(1, 6)),
    ("in the evening", "abends", "du soir", range(6, 12)),
)


def english(n: int) -> str:
    """0 to 999,999."""
    if n < 20:
        return SMALL_EN[n]
    if n < 100:
        return TENS_EN[n // 10] + (f"-{SMALL_EN[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{SMALL_EN[n // 100]} hundred" + (f" and {english(n % 100)}" if n % 100 else "")
    rest = n % 1000
    return f"{english(n // 1000)} thousand" + (f"{' and' * (rest < 100)} {english(rest)}" if rest else "")


def german(n: int, *, last: bool = True) -> str:
    """0 to 999,999. last: nothing follows it in the same word, where 1 is "eins"."""
    if n < 20:
        return "ein" if n == 1 and not last else SMALL_DE[n]
    if n < 100:
        return (f"{german(n % 10, last=False)}und" if n % 10 else "") + TENS_DE[n // 10]
    step, word = (100, "hundert") if n < 1000 else (1000, "tausend")
    return german(n // step, last=False) + word + (german(n % step) if n % step else "")


def french(n: int, *, last: bool = True) -> str:
    """0 to 999,999, as before the spelling reform of 1990. last: no "mille" follows, before which no plural is marked."""
    if n < 20:
        return SMALL_FR[n]
    if n < 100:
        ten = n // 10
        rest = n - 10 * (ten - ten % 2 if ten >= 6 else ten)  # 70 and 90 are counted from 60 and 80
        if not rest:
            return TENS_FR[ten] + "s" * (n == 80 and last)
        return TENS_FR[ten] + (" et " if rest in (1, 11) and n < 80 else "-") + SMALL_FR[rest]
    step, word = (100, "cent") if n < 1000 else (1000, "mille")
    many, rest = divmod(n, step)
    plural = "s" * (step == 100 and many > 1 and not rest and last)
    first = "" if many == 1 else f"{french(many, last=False)} "
    return f"{first}{word}{plural}" + (f" {french(rest, last=last)}" if rest else "")


def number(n: int) -> Sentence:
    """The number alone."""
    return english(n), german(n), french(n)


def date(day: datetime.date, *, weekday: bool) -> Sentence:
    """With or without the day of the week; a year from 1100 on."""
    en, de, fr = (names[day.month - 1] for names in MONTHS)
    en_day, de_day, fr_day = (f"{names[day.weekday()]}" for names in DAYS)
    en_year, de_year, fr_year = _year(day.year)
    first = "premier" if day.day == 1 else french(day.day)
    return (
        f"{f'{en_day} ' * weekday}the {_ordinal_en(day.day)} of {en} {en_year}",
        f"{f'{de_day}, ' * weekday}der {_ordinal_de(day.day)} {de} {de_year}",
        f"le {f'{fr_day} ' * weekday}{first} {fr} {fr_year}",
    )


def time(hour: int, minute: int, part: int) -> Sentence:
    """An hour of the clock from 1 to 11, and which part of the day it is in (see PARTS_OF_DAY)."""
    en_part, de_part, fr_part, _ = PARTS_OF_DAY[part]
    following = hour + 1
    fr_hour, fr_next = (f"{'une' if h == 1 else french(h)} heure{'s' * (h > 1)}" for h in (hour, following))
    if minute == 0:
        en, de, fr = f"{english(hour)} o'clock", f"{german(hour, last=False)} Uhr", fr_hour
    elif minute <= 30:
        en = f"{_minutes_en(minute)} past {english(hour)}"
        de = _german_time(minute, hour)
        fr = f"{fr_hour} {({15: 'et quart', 30: 'et demie'}).get(minute, _feminine(minute))}"
    else:
        left = 60 - minute
        en = f"{_minutes_en(left)} to {english(following)}"
        de = _german_time(minute, hour)
        fr = f"{fr_next} moins {'le quart' if left == 15 else _feminine(left)}"
    return f"{en} {en_part}", f"{de} {de_part}", f"{fr} {fr_part}"


def sentences(count: int, seed: int = 0) -> list[Sentence]:
    """So many different ones, drawn by the seed."""
    found: dict[str, Sentence] = {}
    for sentence in _drawn(random.Random(seed)):
        if len(found) >= count:
            break
        found.setdefault(sentence[0], sentence)
    return list(found.values())


def _drawn(draw: random.Random) -> Iterator[Sentence]:
    first, last = datetime.date(1100, 1, 1).toordinal(), datetime.date(2099, 12, 31).toordinal()
    while True:
        kind = draw.random()
        day = date(datetime.date.fromordinal(draw.randint(first, last)), weekday=draw.random() < 0.5)
        part = draw.randrange(len(PARTS_OF_DAY))
        clock = time(draw.choice(PARTS_OF_DAY[part][3]), draw.choice([0, 15, 30, *range(1, 60)]), part)
        if kind < 0.45:
            yield number(draw.randrange(10 ** draw.randint(2, 6)))
        elif kind < 0.7:
            yield day
        elif kind < 0.8:
            yield clock
        else:
            yield f"{day[0]} at {clock[0]}", f"{day[1]} um {clock[1]}", f"{day[2]} à {clock[2]}"


def _year(year: int) -> Sentence:
    hundreds, rest = divmod(year, 100)
    if hundreds == 20 and rest < 10:
        return english(year), german(year), french(year)
    behind = "hundred" if not rest else f"oh {english(rest)}" if rest < 10 else english(rest)
    if hundreds == 20:
        return f"twenty {behind}", german(year), french(year)
    return f"{english(hundreds)} {behind}", f"{german(hundreds)}hundert{german(rest) if rest else ''}", french(year)


def _ordinal_en(n: int) -> str:
    if n < 20:
        return ORDINALS_EN[n]
    return f"{TENS_EN[n // 10]}-{ORDINALS_EN[n % 10]}" if n % 10 else TENS_EN[n // 10].replace("ty", "tieth")


def _ordinal_de(n: int) -> str:
    return ORDINALS_DE.get(n) or german(n) + ("te" if n < 20 else "ste")


def _minutes_en(minutes: int) -> str:
    if minutes in (15, 30):
        return "a quarter" if minutes == 15 else "half"
    return english(minutes) if minutes % 5 == 0 else f"{english(minutes)} minute{'s' * (minutes > 1)}"


def _german_time(minute: int, hour: int) -> str:
    this, following = german(hour), german(hour + 1)
    around = {25: f"fünf vor halb {following}", 30: f"halb {following}", 35: f"fünf nach halb {following}"}
    if minute in around:
        return around[minute]
    left, word, what = (minute, "nach", this) if minute < 30 else (60 - minute, "vor", following)
    if left == 15:
        return f"Viertel {word} {what}"
    if left % 5 == 0:
        return f"{german(left)} {word} {what}"
    return f"{'eine Minute' if left == 1 else german(left) + ' Minuten'} {word} {what}"


def _feminine(minutes: int) -> str:
    """Of minutes, which are feminine: une, vingt et une."""
    return french(minutes) + "e" * (minutes % 10 == 1 and minutes != 11)
