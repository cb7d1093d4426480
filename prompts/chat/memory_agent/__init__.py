"""The memory agent's questions (§2.2, §3.1): what to store, in which words, and what it changes.

A remembered message costs two: `reading` routes it and writes it down, `comparing` judges the relations of
its facts to similar memories. `rewriting` is asked only where a memory says more than what the fact replaces,
and `forgetting` where something is to go. The questions of the paper's own versions are in `paper_versions`.

Where a further fact about a known person or thing goes (the paper's tests 3, 4 and 6): what it *is* or *has*
(age, kind, breed, name, colour) is appended to the memory that describes it; what it *does, likes or
undergoes* stands by itself.
"""
