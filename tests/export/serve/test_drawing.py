"""Digits that are drawn on the page, by whoever and wherever."""

import math

import numpy as np
import pytest

from tests.export.serve import served


def arc(x, y, across, along, start, end):
    """Places on an ellipse, by angles in degrees."""
    angles = np.radians(np.linspace(start, end, 12))
    return [(x + across * math.cos(a), y - along * math.sin(a)) for a in angles]


# The strokes of each digit, in a square from 0 to 1.
DIGITS = {
    "0": [arc(0.5, 0.5, 0.3, 0.45, 90, 450)],
    "1": [[(0.5, 0.05), (0.5, 0.95)]],
    "2": [arc(0.5, 0.3, 0.3, 0.25, 160, -30) + [(0.2, 0.95), (0.85, 0.93)]],
    "3": [
        arc(0.45, 0.28, 0.28, 0.23, 150, -80)
        + arc(0.45, 0.72, 0.32, 0.24, 80, -150)
    ],
    "4": [[(0.35, 0.05), (0.15, 0.6), (0.85, 0.6)], [(0.65, 0.1), (0.62, 1)]],
    "5": [
        [(0.8, 0.07), (0.3, 0.07), (0.25, 0.45)]
        + arc(0.48, 0.68, 0.32, 0.27, 120, -150)
    ],
    "6": [[(0.65, 0.05), (0.35, 0.4)] + arc(0.48, 0.7, 0.27, 0.25, 150, 510)],
    "7": [[(0.15, 0.1), (0.85, 0.1), (0.45, 0.95)]],
    "8": [
        arc(0.5, 0.28, 0.25, 0.22, 270, -90)
        + arc(0.5, 0.73, 0.3, 0.23, 90, 450)
    ],
    "9": [arc(0.48, 0.3, 0.27, 0.25, 0, 360) + [(0.72, 0.6), (0.6, 0.97)]],
}
# Left, top, width and height of a digit, as shares of the pad.
PLACES = {
    "tiny in a corner": (0.05, 0.7, 0.15, 0.2),
    "as large as the pad": (0.06, 0.05, 0.88, 0.9),
}


@pytest.fixture(scope="module")
def page(browser, shipped):
    """The page of the shipped network, its pad open."""
    with served.listening(served.Served(shipped[0]).app) as server:
        page = browser.new_context().new_page()
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.locator("#took").wait_for()
        page.click("#draw")
        yield page
        page.context.close()
        assert complaints == []


def is_answer(response):
    return "serving_bytes" in (response.request.post_data or "")


def draw(page, strokes, place):
    """Draws; returns the answer and the image that was sent for it."""
    page.click("#clear")
    box = page.locator("#pad").bounding_box()
    left, top, width, height = place
    for stroke in strokes:
        places = [
            (box["x"] + box["width"] * (left + width * x),
             box["y"] + box["height"] * (top + height * y))
            for x, y in stroke
        ]  # fmt: skip
        with page.expect_response(is_answer) as response:
            page.mouse.move(*places[0])
            page.mouse.down()
            for each in places[1:]:
                page.mouse.move(*each)
            page.mouse.up()
    (prediction,) = response.value.json()["predictions"]
    (sent,) = response.value.request.post_data_json["instances"]
    return prediction, served.pixels(served.base64.b64decode(sent["b64"]))


@pytest.mark.parametrize("place", PLACES)
def test_every_digit_is_known_wherever_it_is_drawn(page, place):
    found = {}
    for digit, strokes in DIGITS.items():
        prediction, image = draw(page, strokes, PLACES[place])
        found[digit] = prediction["class_names"]
        expect_like_mnist(image)
    assert found == {digit: digit for digit in DIGITS}


def expect_like_mnist(image):
    """Light on dark, 20 of 28 pixels, the centre of mass in the middle."""
    side = len(image)
    assert image.shape == (side, side, 3)
    grey = image[..., 0].astype(float)
    assert (grey.min(), grey.max()) == (0, 255)
    rows, columns = (np.flatnonzero(grey.max(axis=a) > 128) for a in (1, 0))
    longer = max(np.ptp(rows), np.ptp(columns)) + 1
    assert longer == pytest.approx(side * 20 / 28, abs=0.01 * side)
    along = np.arange(side) + 0.5
    for axis in (0, 1):
        centre = np.average(along, weights=grey.sum(axis=axis))
        assert centre == pytest.approx(side / 2, abs=0.01 * side)


def test_what_was_drawn_is_recalled(page):
    prediction, image = draw(page, DIGITS["3"], PLACES["tiny in a corner"])
    page.locator("#recalled", has_text="from the capsule alone").wait_for()
    assert page.inner_text("#winner") == "3"
    assert max(prediction["scores"]) > 0.8
    drawn = page.evaluate(
        "[...drawn.getContext('2d').getImageData(0, 0, 28, 28).data]"
    )
    drawn = np.array(drawn).reshape(28, 28, 4)[..., 0] / 255
    side = len(image) // 28 * 28
    seen = image[:side, :side, 0].reshape(28, side // 28, 28, -1)
    seen = seen.mean(axis=(1, 3)) / 255
    assert np.corrcoef(drawn.ravel(), seen.ravel())[0, 1] > 0.7


def test_a_dot_and_a_cleared_pad_are_no_trouble(page):
    prediction, image = draw(
        page, [[(0.5, 0.5)]], PLACES["as large as the pad"]
    )
    assert len(prediction["scores"]) == 10
    assert 0 < (image[..., 0] > 128).mean() < 0.05
    page.click("#clear")
    assert not page.locator("#invert").is_visible()
