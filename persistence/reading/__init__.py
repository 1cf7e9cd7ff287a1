"""Reading a store that another process may have open."""
