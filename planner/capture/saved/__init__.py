"""What autograd saves for the backward pass of a recorded step."""
