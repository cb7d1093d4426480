"""The questions: wording, typed input, typed answer, checks."""
