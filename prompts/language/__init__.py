"""A light analysis of English, enough for the rules of the memory agent and the chatbot.

Read in this order: `words` (tokens, lemmas, inflection), `lexicon` (closed word classes), `grammar` (tags,
sentences, clauses), `claims` (who is said to be or do what), `comparison` (how two claims stand to one
another), `rewriting`, and for incoming messages `salience`, `composition` and `dates`. Everything is
deterministic and linear in the length of the text; nothing is downloaded.
"""
