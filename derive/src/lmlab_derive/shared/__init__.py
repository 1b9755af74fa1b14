"""What the checker and the laboratory `lmlab` are both made of: mistakes, files, pages, mathematics, printing."""
