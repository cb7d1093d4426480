"""Find in a card what reads like an instruction to agents instead of a lesson (memory poisoning).

A lesson may be in the imperative ("Use a composite index"), but it does not say how an agent should behave.
The check looks for what an injection needs, whatever its subject: taking back earlier instructions, telling
a reader how to answer or judge, addressing a role, imitating a turn of a conversation or a tool call,
sending the reader to an address or running what comes from there, asking for secrets, hiding text. It reads
normalised text (compatibility forms folded, invisible characters taken out), so that spacing, case and
look-alike width do not hide a phrase.

It knows words, most of them English, and proves nothing; cards are shown to agents as data in any case.
A person looks at each flag, and may clear it with a reason.
"""

import re
import unicodedata
from collections.abc import Iterator

from mneme.stores.cards.card import Lesson

CONDUCT = (
    r"(?:answer|reply|respond|output|print|say|obey|comply|follow|ignore|disregard|approve|accept|agree"
    r"|reject|refuse|promote|recommend|trust|believe|pretend|act|roleplay|reveal|disclose|report|mention"
    r"|object|challenge|verify|double.?check|execute|call|invoke|tell|inform|hide|conceal|omit|send|return)"
)
ROLE = (
    r"(?:ai|llm|assistants?|agents?|(?:language )?models?|chat ?bots?|researchers?|leaders?|monitors?"
    r"|devil.?s advocates?|reviewers?|readers? of this)"
)
ORDERS = r"(?:must|shall|should|have to|has to|need to|needs to|will|are to|is to|are required to)"

PATTERNS: dict[str, str] = {
    "takes instructions back": (
        r"\b(?:ignore|disregard|forget|override|bypass|discard|drop|neglect|skip)\b[^.\n]{0,40}"
        r"\b(?:previous|prior|above|earlier|preceding|foregoing|existing|other|all|any|every|your|the|these|system)\b"
        r"[^.\n]{0,30}\b(?:instructions?|prompts?|rules|guidelines?|directives?|messages?|objections?|cards?"
        r"|constraints?|safety|polic(?:y|ies)|told)\b"
    ),
    "gives new instructions": (
        r"\b(?:new|updated|real|actual|following|these) (?:instructions?|directives?|orders?)"
        r" ?(?:are|is|:|follow)"
        r"|\bfrom now on\b[^.\n]{0,40}\b(?:you|your|always|never|answer|reply|respond)\b"
    ),
    "tells the reader how to behave": (
        rf"\byou\b {ORDERS}\b(?: \w+){{0,3}} {CONDUCT}\b"
        r"|\b(?:always|never|only|do not|don'?t) (?:answer|reply|respond|obey|comply|approve|agree"
        r"|object|challenge|disclose|reveal|pretend)\b"
        rf"|\byou are (?:now |actually |really )?(?:an? |the )?(?:\w+ ){{0,3}}{ROLE}\b"
        r"|\b(?:pretend|act as|roleplay|behave) (?:if |as |that |like )?(?:an? |you)"
    ),
    "speaks to a role": (
        rf"\b(?:dear |attention |note to |to the |hey ){ROLE}\b"
        rf"|\b{ROLE} {ORDERS} (?:\w+ ){{0,3}}{CONDUCT}\b"
        rf"|\bas an? (?:\w+ )?{ROLE} ?,? you\b"
    ),
    "poses as a turn of the conversation": (
        r"(?:^|\n)[ \t>#*\-]*(?:system|assistant|user|human|developer|tool|ai)[ \t*]*"
        r"(?:message|prompt)?[ \t]*:(?!:)"
        r"|<\|[^|>\n]{1,40}\|>|\[/?inst\]|<</?sys>>"
        r"|</?(?:system|assistant|user|human|instructions?|prompt)\b[^>]*>"
        r"|(?:^|\n)[ \t]*#{2,} ?(?:system|instructions?|assistant|response)\b"
        r"|\b(?:begin|end) (?:of )?system prompt\b"
    ),
    "contains a tool call": (
        r"</?(?:\w+:)?(?:tool_?(?:call|use|result|response)|function_?(?:calls?|results?)|invoke)\b"
        r"|\"(?:tool_calls?|function_call)\"\s*:"
        r"|\"name\"\s*:\s*\"[^\"\n]+\"\s*,\s*\"(?:arguments|parameters|input)\"\s*:"
        r"|\baction ?: ?\S[^\n]*\n\s*action input ?:|```(?:tool|tool_call|tool_code)\b"
    ),
    "sends the reader to an address": (
        r"\b(?:curl|wget|fetch|visit|open|browse|navigate|go|download|load|install|import|run|execute|send"
        r"|post|upload|forward|submit|get|read|follow|click|call|query|report)\b[^\n]{0,80}?\b(?:https?|ftp|file|data|javascript)"
        r":(?://|[a-z])"
        r"|\b(?:https?|ftp)://[^\s]+[^\n]{0,40}\|\s*(?:sudo )?(?:ba|z|da)?sh\b"
    ),
    "runs a command": (
        r"\b(?:curl|wget)\b[^\n]*\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\brm\s+-[a-z]*[rf][a-z]*\s"
        r"|\b(?:os\.system|subprocess\.(?:run|popen|call)|eval|exec)\s*\(|\bpowershell\b[^\n]*-enc"
    ),
    "asks for secrets": (
        r"\b(?:reveal|print|show|output|send|repeat|disclose|leak|exfiltrate|give|include)\b[^.\n]{0,40}"
        r"\b(?:system prompt|api.?keys?|passwords?|credentials?|secrets?|access tokens?"
        r"|environment variables)\b"
    ),
}
CHECKS = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}
INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u00ad\U000e0000-\U000e007f]"
)
SHOWN = 80


def flags_of(lesson: Lesson) -> list[str]:
    """Return what is suspicious, as "where: what: the words"; nothing for a plain lesson."""
    return [f"{where}: {found}" for where, text in texts(lesson) for found in findings(text)]


def findings(text: str) -> Iterator[str]:
    """Yield what in a text reads like an instruction to agents, with the words that do."""
    if INVISIBLE.search(text):
        yield "hides characters"
    plain = _plain(text)
    for what, pattern in CHECKS.items():
        found = pattern.search(plain)
        if found:
            yield f"{what}: {' '.join(found[0].split())[:SHOWN]}"


def texts(lesson: Lesson) -> Iterator[tuple[str, str]]:
    """Yield every text of a lesson that an agent may read, with the path of its field."""
    yield from _texts("", lesson.model_dump(include={*Lesson.model_fields, "deprecated_because"}))


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(f"{path}.{name}".removeprefix("."), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(f"{path}.{number}", item)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold()
    straight = re.sub("[‘’`´]", "'", folded).replace("“", '"').replace("”", '"')
    return re.sub(r"[^\S\n]+", " ", straight)
