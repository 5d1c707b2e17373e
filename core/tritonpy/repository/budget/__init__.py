"""How much memory the loaded models may hold together, and who has to go when another one needs room."""
