"""Claims, their verdicts and counterexamples; sheets, grades and pages."""
