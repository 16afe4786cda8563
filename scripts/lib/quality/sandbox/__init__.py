"""Runs code that a model wrote against tests, apart from everything else.

Three processes: the caller, an *evaluator* that holds the tests, and a *candidate* that holds
the model's code. Only calls and plain values pass between the last two, so the code sees
neither the tests nor what is expected of it, and cannot touch what judges it.

The modules that run in the child processes import the standard library only.
"""
