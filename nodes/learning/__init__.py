"""Steps of compound learning: solve a task, keep knowledge cards, settle disputes."""
