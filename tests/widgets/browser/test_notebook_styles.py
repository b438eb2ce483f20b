"""What a notebook's own styles do to its outputs does no harm to a widget in them."""

from collections.abc import Callable

import pytest

from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import planned

Show = Callable[..., Shown]

#: As JupyterLab has it for lists in outputs, and for widgets in a row.
_NOTEBOOK = """
.jp-OutputArea-output :is(dl, dt, dd) { display: block; }
.jp-OutputArea-output dt { font-weight: bold; float: left; width: 20%; }
.jp-OutputArea-output dd { float: left; width: 80%; }
.widget-hbox { display: flex; }
.widget-hbox h1 { display: none; }
"""


def in_notebook(page: Shown, classes: str) -> None:
    page.page.add_style_tag(content=_NOTEBOOK)
    page.find("main").evaluate("(element, classes) => { element.className = classes; }", classes)
    page.publish(planned().messages)


@pytest.mark.parametrize("panels", [("graph", "selection"), ("memory", "holders", "selection"), ("streams",)])
def test_widgets_in_a_row_share_its_width(show: Show, panels: tuple[str, ...]) -> None:
    page = show(widgets=[panels, panels])
    in_notebook(page, "jp-OutputArea-output widget-hbox")
    row = page.find("main").bounding_box()
    widths = [box["width"] for one in page.find(".sw").all() if (box := one.bounding_box())]
    assert row is not None
    assert len(widths) == 2
    assert widths[0] == pytest.approx(widths[1], abs=1)
    assert sum(widths) == pytest.approx(row["width"] - 24, abs=4)  # less the padding


def test_a_name_and_its_value_stand_in_one_line_of_a_tooltip(show: Show) -> None:
    page = show()
    in_notebook(page, "jp-OutputArea-output")
    page.move("memory", *page.held(0.5))
    pairs = page.find(".sw-tip dl").evaluate(
        """list => [...list.querySelectorAll('dt')].map(name => {
          const [a, b] = [name, name.nextElementSibling].map(each => each.getBoundingClientRect());
          return [a.top - b.top, b.left - a.right, getComputedStyle(name).fontWeight]; })"""
    )
    assert len(pairs) >= 4
    assert all(abs(higher) < 1 and between >= 0 and weight == "400" for higher, between, weight in pairs), pairs
