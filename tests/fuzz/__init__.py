"""Fuzzers: random damage and random accidents, seeded; ``make fuzz`` runs them at full length."""
