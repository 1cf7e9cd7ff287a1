"""The demo: a transcript, a process that is killed, and a comparison of every field."""
