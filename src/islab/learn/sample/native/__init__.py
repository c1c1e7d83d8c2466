"""Chains in C++: chain.h has the moves, sweep.h linear models, network.h what a chain holds."""
