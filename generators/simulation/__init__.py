"""Simulated sites: brokers, clients and the network between them, in virtual time; the mechanism of faults."""
