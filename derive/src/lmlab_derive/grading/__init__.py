"""Grading a class: the questions of a key, what each student answered, marks, and the pages that show them."""
