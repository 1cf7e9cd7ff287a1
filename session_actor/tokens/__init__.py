"""How many tokens a text has: an estimate with the standard library alone, and exact counters as an extra.

Nothing is imported here: the estimate needs neither the rest of the library nor a tokenizer.
"""
