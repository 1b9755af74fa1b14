"""Three small texts to try things on: Chinese and Arabic sentences made from a few words, and source code of Python itself.

python examples/three_texts.py [FOLDER] writes chinese.txt, arabic.txt and code.txt, always the same for the same Python.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

SENTENCES = 1500

CHINESE = {
    "time": ["今天早上", "昨天晚上", "上个星期", "每天下午", "春天的时候", "吃完饭以后"],
    "who": ["老师", "我的朋友", "那个孩子", "他的母亲", "邻居", "年轻的医生", "两个学生"],
    "where": ["在学校里", "在公园里", "在火车站", "在图书馆", "在家里", "在河边"],
    "did": [
        ("看了", ["一本旧书", "一部电影", "很多照片", "今天的报纸"]),
        ("写了", ["一封长信", "一首诗", "几个汉字", "一篇日记"]),
        ("喝了", ["一杯热茶", "两碗汤", "一瓶水"]),
        ("遇见了", ["一位老朋友", "他的老师", "一只小猫"]),
    ],
    "then": ["然后就回家了", "心里非常高兴", "一直没有说话", "后来下起了雨", "觉得有一点累"],
}
ARABIC = {
    "time": ["في الصباح", "مساء أمس", "قبل يومين", "بعد الغداء", "في الشتاء", "كل يوم جمعة"],
    "who": ["المعلم", "الطالب الجديد", "صديقي", "الطبيب", "جارنا القديم", "الولد الصغير", "أبي"],
    "where": ["في المدرسة", "في البيت", "عند البحر", "في المكتبة", "قرب السوق", "تحت الشجرة"],
    "did": [
        ("قرأ", ["كتابا قديما", "رسالة طويلة", "قصة قصيرة", "الجريدة"]),
        ("كتب", ["درسا جديدا", "قصيدة", "اسمه على الورقة"]),
        ("شرب", ["كوبا من الشاي", "ماء باردا", "فنجان قهوة"]),
        ("رأى", ["قطة صغيرة", "صديقا قديما", "سفينة كبيرة"]),
    ],
    "then": ["ثم عاد إلى البيت", "وكان سعيدا جدا", "ولم يقل شيئا", "ثم نزل المطر", "وجلس مع أصدقائه"],
}


def chinese(luck: random.Random) -> str:
    """One sentence: time, who, where, what, and what came of it."""
    verb, objects = luck.choice(CHINESE["did"])
    words = [luck.choice(CHINESE[part]) for part in ("time", "who", "where")]
    return f"{words[0]}，{words[1]}{words[2]}{verb}{luck.choice(objects)}，{luck.choice(CHINESE['then'])}。"


def arabic(luck: random.Random) -> str:
    """The same in the order of Arabic: the verb comes first."""
    verb, objects = luck.choice(ARABIC["did"])
    who, where, time = (luck.choice(ARABIC[part]) for part in ("who", "where", "time"))
    return f"{verb} {who} {luck.choice(objects)} {where} {time}، {luck.choice(ARABIC['then'])}. "


def code() -> str:
    """The modules that read and write JSON, as they are in this Python."""
    folder = Path(json.__file__).parent
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))


def write(folder: Path) -> None:
    """All three."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, sentence in (("chinese", chinese), ("arabic", arabic)):
        luck = random.Random(0)
        text = "".join(sentence(luck) + ("\n" if i % 5 == 4 else "") for i in range(SENTENCES))
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / "code.txt").write_text(code(), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    """What is asked on the command line; the files that were written are named."""
    parser = argparse.ArgumentParser(description="Write three small texts: chinese.txt, arabic.txt and code.txt.")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("."), help="where to (made if need be); here if none"
    )
    folder = parser.parse_args(words).folder
    write(folder)
    print("Written:", ", ".join(str(folder / f"{name}.txt") for name in ("chinese", "arabic", "code")))


if __name__ == "__main__":
    main()
