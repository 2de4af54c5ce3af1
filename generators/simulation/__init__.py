"""Simulated sites: brokers, clients and the network between them, in virtual time; what a fault is."""
