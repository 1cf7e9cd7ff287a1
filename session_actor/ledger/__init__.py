"""The ledger: the conversation of one path, repaired so that a provider takes it, not yet in a dialect's form."""
