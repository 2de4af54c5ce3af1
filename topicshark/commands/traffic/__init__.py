"""Commands that send, receive or simulate traffic."""
