"""What a plan and a timeline are made of, as plain data; the rules of a plan are at the top of `swap_plan`.

The validator shares these types with everybody, and nothing else.
"""
