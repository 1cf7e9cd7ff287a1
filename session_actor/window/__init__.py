"""The window: how much of a conversation a request shows, and how full a model's window is."""
