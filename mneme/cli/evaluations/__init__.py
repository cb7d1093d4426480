"""`mneme eval`: evaluations and their options."""
