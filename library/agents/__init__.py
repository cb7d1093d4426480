"""The agents that share memories, the rubrics that score them, and the forms of what they write."""
