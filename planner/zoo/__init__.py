"""The models of the papers and today's, as plain torch modules in a training step."""
