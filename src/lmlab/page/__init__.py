"""What all pages of the lab are made of: one HTML shell and stylesheet, tables, figures, numbers and mathematics.

Nothing here knows what a model, a claim or a run is. A page is one file that needs nothing but itself.
"""
