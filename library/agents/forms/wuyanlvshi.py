"""五言律诗: eight lines of five characters, one level rhyme, regulated tones, parallel middle couplets.

Sounds are today's (pypinyin, each character as its line has it), and rhymes those of 中华新韵 in its fourteen
groups. Tones may hold by either of two readings, but a poem must not mix them: today's, as that standard
prescribes, or the old one, in which characters that had the entering tone are oblique. Other changes of sound
since the Tang are not undone, so that some old poems are faulted.

Tones: the four kinds of line (the first and the third character free only as far as neither 孤平, 三平尾 nor
三仄尾 arises; 平平仄平仄 and 仄平平仄平 stand, as the tradition has it), joined by 对 and 粘 into the four
regular orders. Of parallelism only what code can see is checked: no character answers itself. Whether senses
answer one another is for a reader.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import yaml
from pypinyin import Style, pinyin

from mneme.library.agents.forms import Faults

LINES, LENGTH = 8, 5
LEVEL, OBLIQUE = "平", "仄"
_DATA = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TONE_PATTERNS = {kind: re.compile(tones) for kind, tones in _DATA["kinds"].items()}
ORDERS: dict[str, list[str]] = _DATA["orders"]
RHYME_GROUP: dict[str, str] = {final: group for group, finals in _DATA["rhymes"].items() for final in finals}
APICAL = re.compile("(zh|ch|sh|r|z|c|s)i")
ENTERING = frozenset("".join(_DATA["entering"]))
"""Characters with an entering tone that are, or in one reading are, level today."""


def check(answer: str) -> Faults:
    """Return where a text is not a 五言律诗, with lines and characters."""
    lines = [line for line in re.split(r"[，。；！？、\s]+", answer) if line]
    if len(lines) != LINES:
        return [("the whole", f"{len(lines)} lines instead of {LINES}")]
    uneven = [
        (f"line {number}", f"{line} is not five Chinese characters")
        for number, line in enumerate(lines, 1)
        if not re.fullmatch(rf"[\u4e00-\u9fff]{{{LENGTH}}}", line)
    ]
    if uneven:
        return uneven
    broken = min(  # one reading for the whole poem: it may not mix them
        (_tones([reading(line) for line in lines], lines) for reading in (tones, old_tones)), key=len
    )
    couplets = [
        (f"lines {first + 1} and {first + 2}", f"{one} answers itself in a parallel couplet")
        for first in (2, 4)
        for one in lines[first]
        if one in lines[first + 1]
    ]
    return [*broken, *_rhymes(lines), *couplets]


def tones(line: str) -> str:
    """Return a line's tones as 平 and 仄, by today's reading in context."""
    read = [syllable[0] for syllable in pinyin(line, style=Style.TONE3, neutral_tone_with_five=True)]
    return "".join(LEVEL if syllable[-1] in "12" else OBLIQUE for syllable in read)


def old_tones(line: str) -> str:
    """Give a line's tones as the old rhyme books count them: what had the entering tone is oblique."""
    read = zip(line, tones(line), strict=True)
    return "".join(OBLIQUE if character in ENTERING else tone for character, tone in read)


def rhyme_group(line: str) -> str:
    """Return the group of 中华新韵 to which a line's last character belongs."""
    syllable = pinyin(line, style=Style.NORMAL)[-1][0]
    if APICAL.fullmatch(syllable):  # their i is another vowel, with a rhyme of its own
        return RHYME_GROUP["-i"]
    final = pinyin(line, style=Style.FINALS, strict=True)[-1][0].replace("ü", "v")
    return RHYME_GROUP.get(final, final)


def _tones(found: Sequence[str], lines: Sequence[str]) -> Faults:
    """Return the faults by the nearest tone pattern."""
    by_order = {
        order: [
            (f"line {number}", f"{line} is {has}, where {kind} belongs ({order})")
            for number, (line, has, kind) in enumerate(zip(lines, found, kinds, strict=True), 1)
            if not TONE_PATTERNS[kind].fullmatch(has)
        ]
        for order, kinds in ORDERS.items()
    }
    return min(by_order.values(), key=len)


def _rhymes(lines: Sequence[str]) -> Faults:
    evens = {number: lines[number - 1] for number in range(2, LINES + 1, 2)}
    group = rhyme_group(lines[1])
    faults = [
        (f"line {number}", f"{line[-1]} is of {rhyme_group(line)}, not of {group} like {lines[1][-1]}")
        for number, line in evens.items()
        if rhyme_group(line) != group
    ]
    # The first line may rhyme, and must where it ends level.
    if old_tones(lines[0])[-1] == LEVEL and rhyme_group(lines[0]) != group:
        faults.append(("line 1", f"{lines[0][-1]} is level but does not rhyme"))
    said = [line[-1] for line in evens.values()]
    return faults + [
        (f"line {number}", f"{line[-1]} rhymes with itself")
        for number, line in evens.items()
        if said.count(line[-1]) > 1
    ]
