"""What pages of the lab are made of beside the HTML shell of `lmlab_derive.shared`: figures, heat and numbers.

Nothing here knows what a model, a claim or a run is. A page is one file that needs nothing but itself.
"""
