"""What is drawn, in numbers: one frozen dataclass for each picture, and the function that fills it."""
