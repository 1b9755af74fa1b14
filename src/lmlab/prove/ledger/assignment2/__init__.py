"""The claims of "assignment2", in the order of the document."""
