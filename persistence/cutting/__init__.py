"""The cut: the records of full segments move from the log into the journals of the sessions."""
