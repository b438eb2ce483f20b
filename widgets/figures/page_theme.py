"""The style sheet beside figures in a notebook: the text above them, and how they are dark on a dark page.

The kernel does not know whether a notebook is dark, and the page may change it at any time. So a figure with the theme
`auto` is drawn in colours that look like the light ones but are used for nothing else; on a dark page, a style sheet
beside the figure replaces each by its dark counterpart. Without the style sheet, the figure is a light one.
"""

from __future__ import annotations

from functools import cache

from widgets.figures.theme import DARK_OF, FONT

#: What JupyterLab and Jupyter Notebook, Visual Studio Code and Colab say of a dark page.
DARK_PAGE = ':is(body[data-jp-theme-light="false"],body.vscode-dark,html[theme="dark"] body)'
#: JupyterLab keeps 20 pixels free at the right of what is not a plot, and a band of the page's colour below it.
_TEXT = f"""
.stowage-text .inside{{padding:10px 12px 0;font:12px/16px {FONT};overflow-wrap:anywhere}}
.jp-RenderedHTMLCommon .stowage-text.stowage-text{{margin:0 -20px 0 0}}
.stowage-text .title{{font-size:14px;line-height:20px}}
.stowage-text .title b{{margin-right:6px}}
.stowage-text .summary{{max-width:130ch;text-wrap:pretty}}
.stowage-text .key{{font-size:11px;padding-top:6px}}
"""


@cache
def page_style() -> str:
    """The style sheet."""
    rules = []
    for mark, dark in DARK_OF.items():
        written = ", ".join(str(int(mark[at : at + 2], 16)) for at in (1, 3, 5))
        # plotly writes colours as rgb(...), those of hatches as attributes; inside a text it leaves them as they are
        rules.append(
            f'[style*="fill: rgb({written})"],[style*="fill:{mark}"],[fill="rgb({written})"]{{fill:{dark}!important}}'
            f'[style*="stroke: rgb({written})"],[stroke="rgb({written})"]{{stroke:{dark}!important}}'
            f'[style*="background: rgb({written})"],[style*="background:{mark}"]{{background:{dark}!important}}'
            f'[style*="color:{mark}"]{{color:{dark}!important}}'
        )
    text = "".join(_TEXT.splitlines())
    return f"{text}{DARK_PAGE} :is(.js-plotly-plot,.stowage-text){{{''.join(rules)}}}"
