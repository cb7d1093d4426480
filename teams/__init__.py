"""Teams that discuss: roles, memory templates, who speaks when, what document they are to produce."""
