"""Chains in C++: `chain.h` has the moves, `sweep.h` the linear models, `network.h` what a chain holds."""
