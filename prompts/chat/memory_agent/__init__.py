"""The memory agent's questions (§2.2, §3.1): what to store, in which words, and what it changes.

A remembered message costs three: `reading` routes it and writes it down, `comparing` judges every pair of a
fact and a similar memory, and `rewriting` brings a memory up to date; `forgetting` says what is to go. What
is written is held to what was said (`holding`). The questions of the paper's own versions are in
`paper_versions`.

Where a further fact about a known entity goes (the paper's tests 3, 4 and 6): what the entity *is*
(age, kind, breed, name, colour, size: said with a copula) joins the memory that holds its profile, an
addition; what it *does, likes or undergoes* stands by itself, an insertion. Where either can be
defended the rules insert. This and the appended age deviate from the paper's run on purpose: its
test 6 lost a memory.
"""
