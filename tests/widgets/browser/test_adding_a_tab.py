"""A tab is a feature in the page, too: a folder that registers itself, and one line in the registry of panels."""

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree

import pytest

from tests.widgets.browser.page import EVERY_PANEL, Shown
from tests.widgets.browser.recorded_messages import planned
from widgets.messages.message import message
from widgets.page import bundle

Show = Callable[..., Shown]

TOY = """// A tab that counts.
import { mainButton } from '../../controls/main_button.js';
import { make, say } from '../../core/dom.js';
import { keep, registerFeature } from '../../core/features.js';

const counting = ({ toy }) => toy?.state === 'counting';

function toyPanel(section, { store }) {
  const words = section.appendChild(make('p', { class: 'sw-toy-words' }));
  const show = () => say(words, store.toy ? `${store.toy.state} ${store.toy.times} times` : 'nothing yet');
  show();
  return store.on(['toy'], show);
}

function stop({ store }) {
  if (!counting(store)) return false;
  store.ask({ do: 'stop_toy' });
  return true;
}

registerFeature({
  name: 'toy',
  label: 'Toy',
  panel: toyPanel,
  state: { toy: null },
  receivers: { toy: keep('toy') },
  keys: { Escape: stop },
  help: [[['Z'], 'count']],
  tab: {
    busy: counting,
    share: ({ toy }) => toy?.share ?? null,
    status: ({ toy }) => (toy ? `has counted ${toy.times}` : 'has not counted'),
    button: mainButton('toy', {
      label: store => (counting(store) ? 'Stop' : 'Count'),
      stopping: 'Stopping',
      busy: counting,
      reason: () => '',
      press: store => ({ do: counting(store) ? 'stop_toy' : 'toy' }),
    }),
    wanted: () => false,
  },
});
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's script with one more folder and one more line."""
    here = tmp_path / "page"
    copytree(Path(bundle.__file__).parent, here)
    (here / "js/panels/toy").mkdir()
    (here / "js/panels/toy/toy_panel.js").write_text(TOY)
    with (here / "js/panels/registry.js").open("a") as registry:
        registry.write("import './toy/toy_panel.js';\n")
    monkeypatch.setattr(bundle, "_HERE", here)
    bundle.script.cache_clear()
    yield
    bundle.script.cache_clear()


@pytest.mark.usefixtures("toy")
def test_its_tab_status_button_messages_and_keys_work(show: Show) -> None:
    page = show([*EVERY_PANEL, "toy"])
    page.publish(planned().messages)
    tabs = page.find("[role=tab]")
    assert tabs.all_inner_texts() == ["Search", "Plans", "Partition", "Run", "Toy"]
    assert page.find(".sw-bottom").get_attribute("aria-label") == "Search, plans, partition, run and toy"
    page.find(".sw-acts .sw-do-toy").click()
    page.wait_for_request("toy")
    assert tabs.nth(4).get_attribute("aria-selected") == "true"
    assert page.text(".sw-toy-words") == "nothing yet"
    page.publish([message("toy", {"state": "counting", "times": 3, "share": 0.25})])
    assert page.text(".sw-toy-words") == "counting 3 times"
    assert page.text(".sw-status") == "has counted 3"
    assert page.text(".sw-do-toy") == "Stop"
    assert "primary" in (page.find(".sw-do-toy").get_attribute("class") or "")
    assert page.find(".sw-progress").evaluate("bar => bar.style.width") == "25%"
    page.plot("memory").focus()
    page.press("Escape")
    page.wait_for_request("stop_toy")
    page.press("?")
    assert "count" in page.find(".sw-help dd").all_inner_texts()
    assert page.errors == []


@pytest.mark.usefixtures("toy")
def test_its_panel_alone_or_beside_one_without_a_tab_needs_no_tab(show: Show) -> None:
    page = show(["toy", "selection"])
    page.publish([*planned().messages, message("toy", {"state": "done", "times": 1})])
    assert page.text(".sw-toy-words") == "done 1 times"
    assert page.find("[role=tab]").count() == 0
    assert page.errors == []
