"""The style sheet of figures in a notebook: for the text above them, and for dark pages.

The kernel does not know whether a notebook is dark, and the page may change at any time. So a figure with the theme
`auto` is drawn in colours that look like the light ones but are used for nothing else; on a dark page, a style sheet
beside the figure replaces each by its dark counterpart. Without the style sheet, the figure is light.
"""

from __future__ import annotations

from functools import cache

from widgets.figures.theme import DARK_OF, FONT

#: Selector of a dark page in JupyterLab and Jupyter Notebook, Visual Studio Code and Colab.
DARK_PAGE = ':is(body[data-jp-theme-light="false"],body.vscode-dark,html[theme="dark"] body)'
#: JupyterLab keeps 20 pixels free at the right of outputs that are not plots, and a band of page colour below them.
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
        # plotly writes colours as rgb(...), and those of hatches as attributes; inside a text it leaves them unchanged
        rules.append(
            f'[style*="fill: rgb({written})"],[style*="fill:{mark}"],[fill="rgb({written})"]{{fill:{dark}!important}}'
            f'[style*="stroke: rgb({written})"],[stroke="rgb({written})"]{{stroke:{dark}!important}}'
            f'[style*="background: rgb({written})"],[style*="background:{mark}"]{{background:{dark}!important}}'
            f'[style*="color:{mark}"]{{color:{dark}!important}}'
        )
    text = "".join(_TEXT.splitlines())
    return f"{text}{DARK_PAGE} :is(.js-plotly-plot,.stowage-text){{{''.join(rules)}}}"
