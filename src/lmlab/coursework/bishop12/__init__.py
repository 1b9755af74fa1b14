"""bishop12: worked solutions to the exercises of chapter 12 of a textbook."""
