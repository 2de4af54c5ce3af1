"""The catalogue of faults, one file a family. Importing this package enters all of them (see ``fault.py``)."""

from generators.faults import acks, conditions, delivery, loop, numbers, retained, wire

__all__ = ["acks", "conditions", "delivery", "loop", "numbers", "retained", "wire"]
