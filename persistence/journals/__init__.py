"""The journals of the sessions, and what is removed of them."""
