"""The questions: wording, typed input, typed answer, and the rule."""
