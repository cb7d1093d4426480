"""Which sentences of a message state something.

A sentence is kept, as it was typed, unless it surely holds nothing: it asks or sets a task, or it has only
words of grammar, courtesy and reaction. One word more is enough where a clause points to the user's world (a
person, a name, a number, code, a standing wish), two where it says what something is, else four.
"""

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from mneme.prompts.chat.evidence import UNSPACED, sentences, words

MAX_READ = 20_000  # characters of a message: what is longer is a document
MAX_CHARS = 1000  # characters of a statement that stands in one memory; a longer one is split between words
GRAMMAR = frozenset(
    words(
        "a an the this that these those it its i im ive id ill me my mine you u ur your yours youre ya we "
        "us our he she it they him her them his their one ones some any all more most much many lot lots "
        "bit less same user ask asked like be am is are was were been being isn aren wasn do does did done "
        "doing don didn doesn has have had having haven hasn can could ca cant will would wo wont shall "
        "should may might must won couldn get got getting go going gonna goes gotta make makes made let "
        "lets give say said tell told see saw look know think thought guess hope mean meant wait try need "
        "needed want find feel keep come back and or but if so as than then of to in on at by for from with "
        "without about up down out off over into again there here now today tomorrow later soon when where "
        "what who which why how not no never just only also too very really quite still already even ever "
        "actually exactly maybe probably thing things something anything everything nothing way time day "
        "night first while till until w n r sure believe follow agree disagree knew owe looking such next "
        "second expected wondering rephrase worked"
    )
)
REACTION = frozenset(
    words(
        "hi hello hey heya hiya yo sup morning afternoon evening thanks thank thx ty cheers ta please pls "
        "plz welcome sorry oops ok okay k okey right alright well oh ah aha ooh oof aw aww ahh hmm hm huh um "
        "eh yay ugh wow omg lol lmao haha hahaha ha hehe yes yeah yep yup aye nope nah sure fine good great "
        "nice awesome cool perfect brilliant lovely amazing wonderful fantastic excellent splendid sweet "
        "neat super grand fair true best better bad funny happy glad odd typical love loved dear mate pal "
        "man bro dude friend god lord bless mercy darned bye goodbye gtg luck wish worries worry kind "
        "appreciate helpful helps helped help indeed definitely gotcha understand noted agreed care catch "
        "mind anyway interesting weird wonder idea quick question wild joking kidding testing bored "
        "confused curious pleasure goodness problem complain whatever hallo guten danke gut gute nacht "
        "tschüss super genau hola gracias buenas buenos días noches vale claro adiós bonjour merci salut "
        "bonne nuit d accord parfait ciao grazie buongiorno buonanotte perfetto olá oi obrigado obrigada "
        "bom boa noite dia valeu tchau cześć dzięki dzień dobry dobranoc hoi bedankt dank je wel "
        "goedemorgen doei merhaba teşekkürler sağol tamam günaydın jaja jajaja leuk schönen feierabend "
        "shame reckon reckoned understood punchier shorter longer simpler clear"
    )
)
EMPTY = GRAMMAR | REACTION
COURTESY = re.compile(  # of scripts without spaces
    "なるほど|ありがとう(?:ございます)?|おはよう(?:ございます)?|こんにちは|すみません|お疲れ様(?:です)?|"
    "了解(?:です|しました)?|谢谢你?|好的|明白了?|你好|再见|不错"
)
OPENING = REACTION | {"so", "and", "but", "now", "btw", "also", "kindly"}
PERSON = re.compile(
    r"(?i)\b(?:i|im|ive|me|we|us|my|mine|our|ours|he|she|they|his|her|their|ich|mein\w*|wir|je|mon|ma|mes|yo|mis?|"
    r"io|mi[oa]|eu|meu|minha|ik|mijn|mam|benim)\b|[我私僕]"
)
TIED = re.compile(  # what ties a clause to the user's world
    PERSON.pattern
    + r"|\b(?:always|never|every|each|only|no|not|dont|cant|wont|remember|please|pls|prefer|avoid|"
    r"\w{3,6}days?|changed|switched|moved|mum|mom|dad|kids?|baby|wife|husband|boss|parents)\b|n['’]t\b|\d|`"
    r"|(?<=[\w,;:(] )(?-i:(?!I\b)[A-Z])"
    r"|^\w+ here\W*$"
    r"|^\W*(?:be|use|call|keep|answer|reply|stop|am|have|had|got|was|been|love|hate|like|live)\b"
)
IS = re.compile(r"(?i)\b(?:is|are|was|were|has|have|must)\b|['’]s\b|です|是")
THAT = re.compile(r"(?i)(?:that|this)(?:['’]?s)?\b(?!.*\b(?:my|our)\b)")  # a comment on an answer
ASKING = frozenset(
    words(
        "what wat wot whit who whose whom which why how warum wieso wie wo welche wer wieviel qué que "
        "cómo como cuál cuánto cuánta dónde quién comment combien quel quelle pourquoi où qui cosa "
        "quale quanto quanti perché dove qual onde por jak ile gdzie czy dlaczego co hoe waar "
        "waarom wat welke hoeveel nasıl neden nerede kaç ne hangi"
    )
)  # in English and eight other languages that many people write in
SEARCHING = re.compile(
    r"(?i)\bhow to\b|\bvs\b|\b(?:ways?|tricks?|tips?|ideas?) (?:to|for)\b|\bwhat now$"
    r"|\bm[ıiuü]s[ıiuü]n(?:[ıiuü]z)?$|\bne(?: oldu| demek)?$|[吗呢]$|什么|怎么|哪|^帮我|^写"
    r"|ですか|ください|(?:教え|作っ|書い)て$"
    r"|^\W*\w+-(?:tu|vous|moi)\b|\w(?:Error|Exception)\b"
)
ALWAYS_ASKING = frozenset(words("is are does"))
INVERTED = ALWAYS_ASKING | frozenset(words("can could would should"))
AUXILIARY = INVERTED | frozenset(words("do did will shall may am was were has have had"))
PRONOUN = frozenset(words("i you u ya we he she it they this that there any"))
TASK = frozenset(
    words(
        "write explain translate summarize summarise compare define describe calculate compute convert "
        "continue recommend suggest proofread rephrase rewrite generate compose solve elaborate expand "
        "clarify imagine pretend act formuliere schreib schreibe übersetze erkläre traduce escribe "
        "escríbeme dame explícame écris écrivez traduis explique donne scrivi traduci spiega dammi escreve "
        "escreva traduz faz faça explica napisz przetłumacz wyjaśnij podaj schrijf vertaal geef leg çevir "
        "yaz açıkla differentiate integrate conjugate draft paraphrase shorten shorter gimme rechne propose "
        "conjugue résume resume bedenk wymyśl öner söyle anlat maak reword rename quiz correct corrige "
        "corregge correggi hazme hazlo dime faz-me diga przelicz popraw zeg noem korrigiere nenne sag ver"
    )
)
WANTED = frozenset(
    words(
        "cost price capital average formula poem quotes lyrics mnemonic percentage code jokes names words "
        "haiku paragraph riddle difference synonym synonyms examples types list ideas tips recipe advice "
        "suggestions meaning codes lines form"
    )
)  # what a task without a verb names
MAKING = re.compile(
    r"(?i)(?:tell|give|show|list|find|make|create|draft|draw|plan|fix|check|name|prepare|help|remind|do|turn"
    r"|pick|correct|reply to|respond to) (?:me|us|mi|this|these|it|out|with|an?|the|some|another|how|what|"
    r"why|if|two|three|four|five|six|ten|\d+)\b(?! to\b)"
)
STANDING = re.compile(  # what makes a lasting wish of a task
    r"(?i)\b(?:always|never|every ?time|whenever|from now on|(?:when|if) (?:i|you|we)|unless|only|without|"
    r"instead|max|not|none|everything|no|each|in future|keep \w+|don['’]?t|"
    r"toujours|jamais|siempre|nunca|immer|nie|keine?|sempre|mai|zawsze|altijd|nooit|geen|hep|asla)\b"
)
CLAUSES = re.compile(
    r"(?i)(?:[,;:!–—.]|\s-+)\s+|[，、。]|,(?=[^\s\d])|\s+(?=(?:because|cause|cuz|bc|given|now that|"
    r"considering|(?:but|and|as|so) (?:i|im|my|we|he|she|they)|so (?:can|could|would|what|how|any|pls))\b)|"
    r"^\W*(?:did|have) i (?:mention|tell|told|sa)\w*(?: you)?\b"
)
PASTED = re.compile(r"(?i)\b(?:this|these|following|text|e?mail|sentence|code|spelling|grammar)\b[^:]{0,40}:")
WISHING = re.compile(
    r"(?i)^\W*i(?:(?: want| need| would like|['’]?d like)|['’]?m looking for)\b(?: (?:to know|an?|some)\b)?"
)
TAG = re.compile(r"(?i),? (?:ok|okay|right|yeah|please|eh|innit|can|no|yes|alright)\?+$")  # `No jokes, ok?`
REFERRING = re.compile(
    r"(?i)\W*(?:(?:and|but|so|also|then|sorry|oops|no|wait|actually)\W+)*(?:he|she|they|it|his|hers?|theirs?|its|"
    r"him|them|ours|mine|there|that|this|these|both|i meant?)\b"
)
VERBATIM = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|https?://\S+")


class Statement(NamedTuple):
    """What a message states in one go, as it was typed, and with the words before it that it refers to."""

    quote: str
    content: str


def statements(message: str, preceding: Sequence[str] = ()) -> list[Statement]:
    """Return all that a message states, in its own words.

    What begins with a pronoun joins the statement before it, or has the question or turn before it in front.
    """
    turns = [each.removeprefix("user: ") for each in preceding if each.startswith("user: ")]
    before = statements(turns[-1])[-1:] if turns and turns[-1] != message else []
    context = "".join(each.quote for each in before if not re.match(r"(?i)(?:i|we)\b", each.quote))
    found: list[Statement] = []
    is_long = len(message) > MAX_READ
    for sentence in sentences(message[:MAX_READ].rpartition(" ")[0] if is_long else message):
        is_question, refers = asks(sentence), REFERRING.match(sentence) is not None
        if not (says_beside(sentence) if is_question else says(sentence, bool(found))):
            context = sentence if is_question else context
            if is_question and PASTED.search(sentence):
                break  # what follows is the text that the task is about
        elif refers and found and not context and len(found[-1].content) + len(sentence) < MAX_CHARS:
            quote, content = found[-1]
            found[-1] = Statement(f"{quote} … {sentence}", f"{content} {sentence}")
        else:
            ended = f"{context}." if context[-1:].isalnum() else context
            for part in wrap(sentence, MAX_CHARS, replace_whitespace=False):
                found.append(Statement(part, f"{ended} {part}" if refers and context else part))
            context = ""
    return found


def asks(sentence: str) -> bool:
    """Tell whether a sentence is a question or sets a task."""
    said = TAG.sub("", sentence).rstrip(")\"'”’ ")
    opened = _opened(said)
    first, second, *rest = read = [_core(each) for each in words(opened)[:9]] + ["", ""]
    if first in {"can", "could", "will"} and second in {"you", "u"} and STANDING.search(opened):
        return False
    if VERBATIM.fullmatch(sentence) or said.endswith(("?", "？")) or SEARCHING.search(said):
        return True
    if {first, first.removesuffix("s")} & ASKING:  # but `What I hate most is …`, `How I like it: …`
        return not (second in {"i", "we"} and ({"is", "are"} & {*rest} or ": " in opened))
    is_inverted = (first in AUXILIARY and second in PRONOUN) or (
        first in INVERTED and second in {"a", "an", "the", "my", "your", "his", "her", "our", "some"}
    )
    is_when = first in {"when", "where"} and second in AUXILIARY | {""}
    is_bare = PERSON.search(said) is None and IS.search(said) is None
    is_task = first in TASK or MAKING.match(opened) or (is_bare and not WANTED.isdisjoint(read[:4]))
    plain = VERBATIM.sub(" ", opened)
    return first in ALWAYS_ASKING or is_inverted or is_when or (bool(is_task) and not STANDING.search(plain))


def says(sentence: str, known: bool = False) -> bool:
    """Tell whether a sentence states something: a clause tied to the user, or enough of other words.

    It needs fewer where another sentence of the message is `known` to state something.
    """
    clauses = [each for each in CLAUSES.split(sentence) if TIED.search(each)]
    is_tied = any(len(content_of(each)) > bool(THAT.match(_opened(each))) for each in clauses)
    reacts = not (REACTION | {"you"}).isdisjoint(map(_core, words(sentence)[:1]))
    least = 2 if IS.search(sentence) else 8 if UNSPACED.search(sentence) else 4  # words, or letters
    least += reacts - 2 * known
    return is_tied or len(content_of(sentence)) >= max(least, 1)


def says_beside(question: str) -> bool:
    """Tell whether a clause of a question states something about the user or somebody they speak of."""
    clauses = CLAUSES.split(VERBATIM.sub(" ", question).partition(":")[0])
    said = [
        each for each in clauses[:-1] if EMPTY.isdisjoint(words(each))
    ]  # in another language than English
    said += [each.rstrip("? ") for each in clauses if PERSON.search(each) and len(words(each)) > 2]
    return any(says(each) and not asks(each) for each in said)


def content_of(text: str) -> list[str]:
    """Return the words of a text that are neither of grammar nor of courtesy."""
    return [each for each in map(_core, words(COURTESY.sub(" ", text))) if each and each not in EMPTY]


def _core(word: str) -> str:
    """Return a word without contractions and stretched letters."""
    plain = re.sub(r"(\w)\1{2,}", r"\1", word.lower().replace("’", "'"))
    return re.sub(r"(?:n't|'\w+)$", "", plain).strip("_")


def _opened(sentence: str) -> str:
    """Return a sentence without the courtesies at its beginning."""
    sentence = WISHING.sub("", sentence)
    while (first := re.match(r"\W*([\w’']+)\W*", sentence)) and _core(first[1]) in OPENING:
        sentence = sentence[first.end() :]
    return sentence
