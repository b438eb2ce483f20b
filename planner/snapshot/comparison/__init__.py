"""A measured peak beside a predicted one."""
