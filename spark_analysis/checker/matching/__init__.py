"""The folds that pair what a protocol requires with what was seen: exchanges and deliveries."""
