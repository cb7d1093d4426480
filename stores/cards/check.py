"""Find in a card what reads like an instruction to agents instead of a lesson (memory poisoning).

A lesson may be in the imperative ("Use a composite index", "Always answer 400 for malformed bodies"), but it
does not say how an agent should behave.
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

ANSWERING = r"(?:answer|reply|respond)"
CONDUCT = rf"(?:{ANSWERING}|obey|comply|approve|agree|pretend|role-?play|promote|object|challenge|disregard)"
JUDGING = (
    r"(?:approve|agree|object|challenge|comply|disclose|reveal|accept|reject|refuse|trust|believe|ignore)"
)
ROLE = (
    r"(?:ai|llm|assistants?|agents?|(?:language )?models?|chat ?bots?|researchers?|leaders?|monitors?"
    r"|devil.?s advocates?|reviewers?|readers? of this)"
)
ORDERS = r"(?:must|shall|should|have to|has to|need to|needs to|will|are to|is to|are required to)"
TALK = (
    r"(?:yes|positively|approved?|in (?:\w+ )?(?:english|french|german|spanish|russian|chinese|one word)"
    r"|only in \w+|to (?:the |any |every |all )?(?:users?|questions?|prompts?|me|anything|everything)\b"
    r"|the (?:user|question)s?\b|with (?:approval|agreement|exactly|only|the words?|yes)|as (?:if|an?)\b)"
)
"""What is answered to whom and how in a conversation; a server answers 400, and no reader of a card does."""
TEAMS = (
    r"(?:drafts?|this|these|cards?|objections?|leader|proposals?|everything|anything|all of|instructions?"
    r"|prompts?|rules?|me)\b"
)
"""What the agents of a team judge; a client may reject a certificate, and no reader of a card does."""

PATTERNS: dict[str, str] = {
    "takes instructions back": (
        r"\b(?:ignore|disregard|forget|override|bypass|discard|drop|neglect|skip)\b[^.\n]{0,40}"
        r"\b(?:previous|prior|above|earlier|preceding|foregoing|existing|other|all|any|every|your|the|these|system)\b"
        r"(?: \w+){0,2} (?:instructions?|prompts?|guidelines?|directives?|objections?|safety|told)\b"
        r"|\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,20}"
        r"\b(?:previous|prior|above|earlier|preceding|foregoing|your|system)\b(?: \w+){0,2}"
        r" (?:rules|messages?|cards?|constraints?|polic(?:y|ies))\b"
        r"|\b(?:ignore|disregard) (?:all |the )?(?:instructions?|prompts?)\b"
    ),
    "gives new instructions": (
        r"\b(?:new|updated|real|actual|following|these) (?:instructions?|directives?|orders?)"
        r" ?(?:are|is|:|follow)"
        r"|\bfrom now on\b[^.\n]{0,40}\b(?:you|your|always|never|answer|reply|respond)\b"
    ),
    "tells the reader how to behave": (
        rf"\byou\b {ORDERS}\b(?: \w+){{0,2}} {CONDUCT}\b"
        rf"|\byou\b {ORDERS}\b(?: \w+){{0,2}} {JUDGING} (?:\w+ ){{0,3}}{TEAMS}"
        rf"|\b(?:always|never|only|do not|don'?t) {ANSWERING}\b(?: \w+){{0,2}} {TALK}"
        rf"|\b(?:always|never|only|do not|don'?t) {JUDGING}\b(?: \w+){{0,3}} {TEAMS}"
        r"|\b(?:always|never|only|do not|don'?t) (?:obey|pretend|role-?play)\b"
        rf"|\byou are (?:now |actually |really )(?:an? |the )?(?:\w+ ){{0,3}}{ROLE}\b"
        rf"|\byou are (?:an? |the )(?:\w+ ){{0,2}}{ROLE}\b"
        r"|\byou are now (?:an? |the )\w+\b"
        r"|\b(?:pretend|act as|roleplay|behave) (?:if |as |that |like )?(?:an? |you)\b[^.\n]{0,30}"
        rf"\b(?:{ROLE}|person|human|unrestricted|no (?:rules|limits|restrictions))\b"
    ),
    "speaks to a role": (
        rf"\b(?:dear |attention |note to (?:the )?|hey ){ROLE}\b|(?:^|\n)to the {ROLE} ?[:,]"
        rf"|\b{ROLE} {ORDERS} (?:\w+ ){{0,3}}(?:{CONDUCT}|{JUDGING} (?:\w+ ){{0,3}}{TEAMS})"
        rf"|\bas an? (?:\w+ )?{ROLE} ?,? you (?:{ORDERS}|are)\b"
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
        r"(?<!\[)\b(?:curl|wget|fetch|visit|browse|navigate|download|load|run|execute|send|post|upload"
        r"|forward|submit)\b[^\n\[]{0,80}?\b(?:https?|ftp|file|data|javascript):(?://|[a-z])"
        r"|\b(?:open|go|install|import|get|read|follow|click|call|query|report)\b(?: [\w-]+){0,3}"
        r" (?:https?|ftp|file|data|javascript):(?://|[a-z])"
        r"|\b(?:https?|ftp)://[^\s]+[^\n]{0,40}\|\s*(?:sudo )?(?:ba|z|da)?sh\b"
    ),
    "runs a command": (
        r"\b(?:curl|wget)\b[^\n]*\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\brm\s+-[a-z]*[rf][a-z]*\s"
        r"|\b(?:os\.system|subprocess\.(?:run|popen|call)|eval|exec)\s*\(|\bpowershell\b[^\n]*-enc"
    ),
    "asks for secrets": (
        r"\b(?:reveal|repeat|disclose|leak|exfiltrate|give|send|include)\b[^.\n]{0,40}"
        r"\b(?:system prompt|api.?keys?|passwords?|credentials?|secrets?|access tokens?"
        r"|environment variables)\b"
        r"|\b(?:print|show|output|tell)\b[^.\n]{0,40}\b(?:system prompt|your (?:\w+ ){0,2}"
        r"(?:prompt|instructions|keys?|passwords?|credentials?|secrets?|tokens?))\b"
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
