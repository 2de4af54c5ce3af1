"""The checker: the steps from messages to verdicts (`steps`), their rules, and the kernels they run on."""
