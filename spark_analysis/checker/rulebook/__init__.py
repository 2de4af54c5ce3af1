"""The texts of the rules, a file for each few families; ``rules`` beside it is the table of all of them."""
