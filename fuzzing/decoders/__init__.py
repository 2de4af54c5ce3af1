"""Every decoder against the codec, on datagrams and dialects made from a seed."""
