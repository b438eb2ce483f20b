"""The processes of workers on this machine: how they are started, asked and ended, and what each of them does."""
