"""The style sheet that makes figures dark on a dark page.

The kernel does not know whether a notebook is dark, and the page may change it at any time. So a figure with the theme
`auto` is drawn in colours that look like the light ones but are used for nothing else; on a dark page, a style sheet
beside the figure replaces each by its dark counterpart. Without the style sheet, the figure is a light one.
"""

from __future__ import annotations

from functools import cache

from widgets.figures.theme import AUTO, DARK_OF

#: What JupyterLab and Jupyter Notebook, Visual Studio Code and Colab say of a dark page.
DARK_PAGE = ':is(body[data-jp-theme-light="false"],body.vscode-dark,html[theme="dark"] body)'


@cache
def page_style() -> str:
    """The style sheet that makes plots of the theme `auto` dark on a dark page."""
    rules = []
    for mark, dark in DARK_OF.items():
        written = ", ".join(str(int(mark[at : at + 2], 16)) for at in (1, 3, 5))
        # plotly writes colours as rgb(...), those of hatches as attributes; inside a text it leaves them as they are
        rules.append(
            f'[style*="fill: rgb({written})"],[style*="fill:{mark}"],[fill="rgb({written})"]{{fill:{dark}!important}}'
            f'[style*="stroke: rgb({written})"],[stroke="rgb({written})"]{{stroke:{dark}!important}}'
        )
        if mark == AUTO.paper:
            rules.append(f'[style*="background: rgb({written})"]{{background:{dark}!important}}')
    return f"{DARK_PAGE} .js-plotly-plot{{{''.join(rules)}}}"
