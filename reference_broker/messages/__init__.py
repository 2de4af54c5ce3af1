"""What brokers and clients put into datagrams: requests, their answers, and where each goes."""
