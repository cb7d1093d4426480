"""What keeps, compares and tells English memories where no language model is connected.

It composes no sentence: a memory is a list of the user's own statements, in which `I` became `the user`, and
a third-person pronoun the only one it can mean. Where it cannot judge it keeps a separate memory, or nothing.

Read in this order: `words` (lists, tokens, inflection), `clauses` (a message cut into statements), `person`
(`I` ↔ `the user` ↔ `you`), `pronouns`, `judge` (what was learned from examples), `keeping` and `composition`
(what a message gives to remember), `comparison` and `rewriting` (what it changes), `answering`.
"""
