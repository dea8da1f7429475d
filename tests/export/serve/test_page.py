"""The page at `/`, in a real browser."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image
from playwright import sync_api as playwright

from tests.conftest import skip_or_fail
from tests.export.serve import served

CHROMIUM = next(
    filter(
        None,
        map(shutil.which, ("chromium", "chromium-browser", "google-chrome")),
    ),
    None,
)
FLAGS = [
    f"--{flag}"
    for flag in (
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    )
]


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder)


@pytest.fixture(scope="module")
def server(pets):
    with served.listening(pets.app) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        skip_or_fail("no Chromium is installed (Debian: chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Opens pages; no page may complain in its console."""
    complaints, contexts = [], []

    def open_page(port, width=1280, **options):
        viewport = {"width": width, "height": 800}
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                complaints.append(message.text)
                if message.type == "error"
                else None
            ),
        )
        page.complaints = complaints
        page.goto(f"http://127.0.0.1:{port}/")
        page.locator("#name", has_text="pets").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def expect_answer(page, pets, file):
    """Waits for the answer that the SavedModel gives for a file."""
    outputs = served.offline(
        pets.folder / "1", "serving_bytes", image_bytes=[file]
    )
    score = f"{outputs['scores'].max():.2f}"
    page.locator("#score", has_text=score).wait_for()
    assert page.inner_text("#winner") == outputs["class_names"][0].decode()
    assert page.locator("#bars .value").all_inner_texts() == [
        f"{score:.2f}" for score in outputs["scores"][0]
    ]
    assert page.locator("#bars .name").all_inner_texts() == [*served.CLASSES]
    assert page.locator("#entries div").count() == 4
    assert page.inner_text("#took").startswith("Answered in ")
    assert page.inner_text("#message") == ""


def choose(page, name, content, kind="image/png"):
    page.set_input_files(
        "#file", {"name": name, "mimeType": kind, "buffer": content}
    )


def test_a_sample_is_classified_on_a_click(opened, server, pets):
    page = opened(server.port)
    assert page.inner_text("#about") == "version 1 · 8 × 8 pixels · 3 classes"
    assert page.locator("#samples button").count() == 3
    page.click("#samples button:nth-child(3)")
    expect_answer(page, pets, pets.model.current.samples["2_café.png"])
    assert page.locator("#preview").is_visible()


def test_everything_can_be_done_from_the_keyboard(opened, server, pets):
    page = opened(server.port)
    names = []
    for _ in range(5):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate(
                "document.activeElement.ariaLabel"
                " ?? document.activeElement.title"
                " ?? document.activeElement.textContent"
            )
            or page.evaluate("document.activeElement.textContent")
        )
    assert names == [
        "Choose an image",
        "Draw",
        "Sample: cat",
        "Sample: dog",
        "Sample: café",
    ]
    page.keyboard.press("Enter")
    expect_answer(page, pets, pets.model.current.samples["2_café.png"])


def test_a_chosen_png_is_sent_as_it_is(opened, server, pets):
    page = opened(server.port)
    file = served.png(served.images(1, seed=5)[0])
    choose(page, "mine.png", file)
    expect_answer(page, pets, file)


def test_a_photograph_is_turned_upright(opened, server, pets):
    """Four colours in the corners, stored lying on their side."""
    corners = np.zeros((40, 40, 3), np.uint8)
    corners[:20, :20] = 255, 0, 0
    corners[:20, 20:] = 0, 255, 0
    corners[20:, :20] = 0, 0, 255
    upright = Image.fromarray(corners)
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = io.BytesIO()
    upright.transpose(Image.Transpose.ROTATE_90).save(
        stored, "JPEG", exif=exif, quality=100, subsampling=0
    )
    page = opened(server.port)
    with page.expect_request("**/*:predict") as request:
        choose(page, "photo.jpg", stored.getvalue(), "image/jpeg")
    (sent,) = request.value.post_data_json["instances"]
    content = served.base64.b64decode(sent["b64"])
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == "PNG"
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert abs(pixels - corners)[5:-5, 5:-5].mean() < 10
    expect_answer(page, pets, content)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_drawing_is_classified(opened, server, width):
    page = opened(server.port, width, has_touch=width == 390)
    page.click("#draw")
    box = page.locator("#pad").bounding_box()
    with page.expect_response("**/*:predict") as response:
        page.mouse.move(box["x"] + 30, box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + 200, box["y"] + 200, steps=4)
        page.mouse.up()
    assert response.value.ok
    (sent,) = response.value.request.post_data_json["instances"]
    content = served.base64.b64decode(sent["b64"])
    with Image.open(io.BytesIO(content)) as image:
        grey = np.asarray(image.convert("L")).astype(int)
    assert grey[0, -1] > 200  # paper
    assert grey[len(grey) // 4, len(grey) // 4] < 50  # ink
    page.locator("#answer").wait_for()
    with page.expect_response("**/*:predict") as response:
        page.click("#invert")
    page.click("#clear")
    page.click("#draw")
    assert not page.locator("#pad").is_visible()


def test_an_image_can_be_dropped_and_pasted(opened, server, pets):
    page = opened(server.port)
    for kind, seed in (("drop", 6), ("paste", 7)):
        file = served.png(served.images(1, seed=seed)[0])
        page.evaluate(
            """([kind, bytes]) => {
              const data = new DataTransfer();
              data.items.add(new File([new Uint8Array(bytes)], "a.png",
                                      {type: "image/png"}));
              const options = {bubbles: true, cancelable: true};
              document.dispatchEvent(kind === "drop"
                ? new DragEvent("drop", {...options, dataTransfer: data})
                : new ClipboardEvent("paste",
                                     {...options, clipboardData: data}));
            }""",
            [kind, list(file)],
        )
        expect_answer(page, pets, file)


def test_errors_are_shown_in_words(opened, server, pets):
    page = opened(server.port)
    message = page.locator("#message.alarm")
    choose(page, "notes.txt", b"no image", "text/plain")
    message.filter(has_text="not an image that the browser can read").wait_for()
    assert not page.locator("#answer").is_visible()
    for status, words in (
        (413, "too large for the server"),
        (429, "The server is busy"),
        (400, "The server refused: because"),
    ):
        page.route(
            "**/*:predict",
            lambda route, _, status=status: route.fulfill(
                status=status, json={"error": "because"}
            ),
        )
        page.click("#samples button")
        message.filter(has_text=words).wait_for()
        page.unroute("**/*:predict")
    page.click("#samples button")
    expect_answer(page, pets, pets.model.current.samples["0_cat.png"])
    page.complaints[:] = [
        each for each in page.complaints if "status of" not in each
    ]


def test_the_server_is_gone(opened, pets):
    with served.listening(served.Served(pets.folder).app) as server:
        page = opened(server.port)
    choose(page, "mine.png", served.png(served.images(1)[0]))
    words = "The server does not answer. Is it still running?"
    page.locator("#message.alarm", has_text=words).wait_for()
    assert not page.locator("#answer").is_visible()
    page.complaints[:] = [
        each for each in page.complaints if "ERR_CONNECTION" not in each
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen_in_light_and_dark(opened, server, width, scheme):
    page = opened(server.port, width, color_scheme=scheme)
    page.click("#samples button")
    page.locator("#answer").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    with Image.open(io.BytesIO(page.screenshot(full_page=True))) as shot:
        assert shot.width == width
        grey = np.asarray(shot.convert("L"))
    assert (np.median(grey) < 60) == (scheme == "dark")
    assert len(np.unique(grey)) > 50


def test_a_model_without_samples_and_capsules(opened, tmp_path):
    version = served.export_small(
        tmp_path / "pets", capsules=False, samples=False
    )
    (version / "labels.txt").unlink()
    with served.listening(served.Served(tmp_path / "pets").app) as server:
        page = opened(server.port)
        assert page.inner_text("#about") == "version 1 · 8 × 8 pixels"
        assert not page.locator("#samples").is_visible()
        choose(page, "mine.png", served.png(served.images(1)[0]))
        page.locator("#answer").wait_for()
        assert page.locator("#bars .name").all_inner_texts() == ["0", "1", "2"]
        assert page.inner_text("#meaning") == "Probability of each class"
        assert not page.locator("#capsule").is_visible()
