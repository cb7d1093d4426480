"""Golden cases for every question to a model, and which model is fit for which role by them."""
