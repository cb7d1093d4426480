"""A light analysis of English, enough for the rules of the memory agent and the chatbot.

Everything is deterministic and linear in the length of the text; nothing is downloaded. Read in this order:

- `lexicon` closed word classes, `words` tokens and inflection, `tagging` parts of speech, `grammar` clauses;
- `entities` who a phrase means, `predicates` a clause as verb and arguments, `attributes` what it says of its
  subject, `claims` all that a text says;
- `values` dates and amounts, `change` signs of change where claims are silent, `comparison` how a fact stands
  to a memory, `rewriting` the memory brought up to date;
- for messages: `casual` typing made plain, `relevance` what is worth keeping, `statements` what is stated,
  `coreference` whom pronouns mean, `dates`, `corrections` by fragments, `replies` to questions, `selection`
  what belongs together or is told in passing, `composition` the memories that result;
- `relations` and `answering` for display and replies.
"""
