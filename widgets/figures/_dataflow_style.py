"""The style sheet of a dataflow graph: the colours of its theme, and a width limited to the cell."""

from __future__ import annotations

from planner.graph import Phase
from widgets.figures._module_style import colours as module_colours
from widgets.figures.notebook_style import DARK_PAGE
from widgets.figures.theme import AUTO, DARK, FONT, Theme

_RULES = """
.stowage-dataflow{background:var(--paper);color:var(--ink);font:12px/16px FONT;font-variant-numeric:tabular-nums;
 padding:10px 12px 12px;box-sizing:border-box}
.stowage-dataflow .title{font-size:14px;line-height:20px;font-weight:600;overflow-wrap:anywhere}
.stowage-dataflow .title span{font-weight:400;color:var(--third);margin-left:8px}
.stowage-dataflow .summary{color:var(--second);max-width:130ch;text-wrap:pretty;overflow-wrap:anywhere}
.stowage-dataflow .legend{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:11px;color:var(--second);margin:8px 0 10px}
.stowage-dataflow .legend i{display:inline-block;width:9px;height:9px;margin-right:5px}
.stowage-dataflow .legend i.edge{width:14px;height:3px;vertical-align:middle}
.stowage-dataflow .graph{overflow-x:auto}
.stowage-dataflow svg{display:block;max-width:100%;height:auto;font:12px FONT}
.stowage-dataflow text{text-anchor:middle;fill:var(--ink)}
.stowage-dataflow .op rect{fill:var(--paper);stroke:var(--third)}
.stowage-dataflow .op text.second{font-size:11px;fill:var(--second)}
.stowage-dataflow .end rect:first-of-type{fill:var(--paper)}
.stowage-dataflow .end text,.stowage-dataflow .flow text{font-size:11px;fill:var(--second)}
.stowage-dataflow .flow path{fill:none;stroke:var(--kind)}
.stowage-dataflow .flow polygon{fill:var(--kind)}
.stowage-dataflow .flow text{paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.stowage-dataflow .op:hover rect{stroke:var(--ink)}
"""


def colours(theme: Theme) -> str:
    """The palette as CSS properties."""
    phases = (f"--phase{number}:{theme.phases[phase]}" for number, phase in enumerate(Phase))
    return ";".join((module_colours(theme), *phases))


def dataflow_style(theme: Theme) -> str:
    """The style sheet; for the theme `auto`, with overrides for a dark page."""
    rules = [line if line.startswith(" ") else line.strip() for line in _RULES.replace("FONT", FONT).splitlines()]
    if theme is AUTO:  # the light palette is in a style attribute, which only `!important` overrides
        dark = colours(DARK).replace(";", "!important;") + "!important"
        rules.append(f"{DARK_PAGE} .stowage-dataflow.auto{{{dark}}}")
    return "".join(rules)
