"""What happens at the turns of a session's life: when it is made, loaded, unloaded, compacted and ended."""
