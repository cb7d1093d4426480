"""The command groups: what is declared here does its work in the modules imported when it runs."""
