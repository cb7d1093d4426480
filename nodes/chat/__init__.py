"""Nodes of the chatbot and of its memory agent."""
