"""What Elixir and OTP test of their servers and supervisors, tested here in our own words (see README.md)."""
