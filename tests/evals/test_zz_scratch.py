import re
from mneme.evals.chat import scripted_answers as s
from mneme.evals.chat import sequential_checks as q
from tests.evals.test_chat_evals import *
def _read(user):
    (memory,) = s._composed(user)["memories"]
    read = {**memory, "since": "", "until": "", "unclear": ""}
    return {"rationale": "It corrects a fact.", "route": "store", "memories": [read]}
def _compared(user):
    memories = re.findall(r"^\[(\d+)\] (.*)$", s._between("memories", user), re.MULTILINE)
    return {"judgements": [_judged(int(n), m) for n, m in memories if s.OLD in m]}
def _judged(number, memory):
    return {"fact": 0, "memory": number, "reason": "By the breed of Max.", "relation": "correction", "outdated": s.OLD, "updated": memory.replace(f"a {s.OLD}", "a Labrador mix")}
s._ANSWERS[s.read_message.system_text()] = _read
s._ANSWERS[s.compare_memories.system_text()] = _compared
old=q.check
async def check(a,b): return {"verdicts": [], **await old(a,b)}
q.check=check
