"""The names of the panels of the Workbench, each that of a folder or a file in `js/panels`."""

EVERY_PANEL = (
    "header",
    "graph",
    "memory",
    "holders",
    "streams",
    "selection",
    "search",
    "plans",
    "partition",
    "run",
)  # fmt: skip
