"""Teams that discuss: roles, memory templates, who speaks when, and the document that they write."""
