"""Compaction: old turns give way to a summary that provably keeps what matters, or they stay."""
