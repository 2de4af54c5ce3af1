"""From the bytes of a capture to datagrams as arrays: records, frames, packets, fragments, copies; and splits."""
