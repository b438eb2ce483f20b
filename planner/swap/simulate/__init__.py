"""How long a plan or a draft takes, by its streams and the link."""
