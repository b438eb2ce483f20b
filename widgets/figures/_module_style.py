"""The style sheet of a module graph: the colours of its theme, and how rows share the available width."""

from __future__ import annotations

from widgets.figures.notebook_style import DARK_PAGE
from widgets.figures.theme import AUTO, DARK, FONT, Theme
from widgets.info import STACK

_RULES = """
.stowage-modules{container-type:inline-size;background:var(--paper);color:var(--ink);font:12px/16px FONT;
 font-variant-numeric:tabular-nums;padding:10px 12px 12px;box-sizing:border-box}
.stowage-modules *{box-sizing:border-box}
.stowage-modules .title{font-size:14px;line-height:20px;font-weight:600;overflow-wrap:anywhere}
.stowage-modules .title span{font-weight:400;color:var(--third);margin-left:8px}
.stowage-modules .summary{color:var(--second);max-width:130ch;text-wrap:pretty}
.stowage-modules .legend{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:11px;color:var(--second);margin:8px 0 10px}
.stowage-modules .legend i{display:inline-block;width:9px;height:9px;margin-right:5px}
.stowage-modules .boxes{position:relative;--bar:26cqi;--move:152px;--size:76px;font-size:12px}
.stowage-modules .box{position:absolute;display:flex;align-items:center;border:1px solid var(--line);border-radius:4px;
 background:var(--paper);padding-left:10px;height:26px}
.stowage-modules .box.opened{align-items:flex-start;background:rgba(127,135,148,.09)}
.stowage-modules .box.opened .name,.stowage-modules .box.opened .size{margin-top:5px}
.stowage-modules .box.folded{box-shadow:2px 2px 0 -1px var(--paper),2px 2px 0 0 var(--line)}
.stowage-modules .name{flex:1 1 0;min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.stowage-modules .name b{font-weight:600}
.stowage-modules .name em{font-style:normal;color:var(--third);margin-left:7px}
.stowage-modules .name u{text-decoration:none;color:var(--second);margin-left:6px}
.stowage-modules .moves{flex:none;width:var(--move);text-align:right;color:var(--second);white-space:nowrap}
.stowage-modules .bar{flex:none;width:var(--bar);margin-left:26px;height:8px;display:flex}
.stowage-modules .bar i{height:8px;min-width:1px}
.stowage-modules .size{flex:none;width:var(--size);text-align:right;white-space:nowrap}
.stowage-modules .down{position:absolute;width:9px;transform:translateX(50%)}
.stowage-modules .down::before{content:"";position:absolute;left:4px;top:0;bottom:4px;width:1px;background:var(--third)}
.stowage-modules .down::after{content:"";position:absolute;left:1px;bottom:0;border:3.5px solid transparent;
 border-top:6px solid var(--third);border-bottom:0}
.stowage-modules .lanes{position:absolute;right:0;top:0;overflow:visible;max-width:none}
.stowage-modules .lanes path{fill:none;stroke:var(--third)}
.stowage-modules .lanes path.back{stroke-dasharray:3 2}
.stowage-modules .lanes path.head{fill:var(--third);stroke:none}
@container (max-width:680px){.stowage-modules .boxes{--bar:17cqi;--move:138px;--size:66px;font-size:11px}
 }
@container (max-width:480px){.stowage-modules .boxes em,.stowage-modules .moving .bar{display:none}
 .stowage-modules .boxes.moving{--bar:-8px}.stowage-modules .boxes .bar{margin-left:16px}
 .stowage-modules .moves{position:absolute;left:10px;bottom:0;text-align:left;font-size:9px;line-height:10px}
 .stowage-modules .box:has(.moves:not(:empty)) .name{padding-bottom:11px;line-height:13px}}
"""


def colours(theme: Theme) -> str:
    """The palette as CSS properties."""
    values = {name: getattr(theme, name) for name in ("paper", "line", "ink", "second", "third")}
    values |= {f"kind{number}": theme.kinds[group] for number, group in enumerate(STACK)}
    return ";".join(f"--{name}:{value}" for name, value in values.items())


def module_style(theme: Theme) -> str:
    """The style sheet; for the theme `auto`, with overrides for a dark page."""
    rules = [line.strip() for line in _RULES.replace("FONT", FONT).splitlines()]
    if theme is AUTO:  # the light palette is in a style attribute, which only `!important` overrides
        dark = colours(DARK).replace(";", "!important;") + "!important"
        rules.append(f"{DARK_PAGE} .stowage-modules.auto{{{dark}}}")
    return "".join(rules)
