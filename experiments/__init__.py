"""The paper's experiments, data sets and benchmarks, on top of the package."""
