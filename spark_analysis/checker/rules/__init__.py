"""How the rules judge: one file for each family, and the views on a session that they share."""
