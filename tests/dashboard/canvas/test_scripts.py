"""What a Content-Security-Policy and a reader of the code may count on in every script."""

import re

import pytest

from tests.dashboard.canvas.stage import canvas_scripts

FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
    r"setAttribute\(\s*[\"'](?:style|on)|setTimeout\(\s*[\"'`]|https?://(?!www\.w3\.org/)"
)


@pytest.mark.parametrize("script", canvas_scripts(), ids=lambda path: path.name)
def test_a_script_is_strict_short_and_makes_no_markup_of_text(script):
    text = script.read_text(encoding="utf-8")
    assert '"use strict";' in text
    assert len(text.splitlines()) <= 350
    assert not FORBIDDEN.findall(text)
