"""Running a plan on a device, to the bit and to the byte."""
