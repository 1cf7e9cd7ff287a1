"""The budget: what a request costs, how much fits, and what is left out when it does not."""
