"""The messages of a session as columns, and the facts about it: policy, endpoints, control data."""
