"""From the log into the journals."""
