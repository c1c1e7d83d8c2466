"""The paper's experiments: run from declared settings, kept as JSON lines, set beside its numbers.

``python -m experiments.paper wbc`` runs one of them. A *cell* is one data set, method, recipe and
seed; the recipe is ``paper``, the settings its authors tuned by hand, or ``default``, nothing set.
"""
