"""Why a claim fails: the small change of the formula that repairs it."""
