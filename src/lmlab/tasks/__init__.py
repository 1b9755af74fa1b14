"""The other tasks neural language models are made for, a package each, registered by `lmlab.plugins`.

Every package has one shape: `__init__` holds its plug-in and the kinds of models that learn the task, `data` reads what is
learned, `learner` says what the loop learns and builds the model, `measure` measures a trained model, `show` prints results,
and `verbs` holds what users call. What only one task needs stands beside these.
"""
