"""The loop over the steps of a run, and the records of them."""
