"""Neural networks that learn their own structure, say how sure they are and can be read."""
