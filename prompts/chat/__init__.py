"""Questions of the chatbot and its memory agent."""
