"""The page at `/`, in a real browser."""

import functools
import io
import json
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from playwright import sync_api as playwright

from encapnet_tf.data.images.pillow import read_image
from tests.export.serve import served


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder)


@pytest.fixture(scope="module")
def server(pets):
    with served.listening(pets.app) as server:
        yield server


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


@functools.cache
def loaded(version):
    return tf.saved_model.load(str(version)).signatures["serving_bytes"]


def expect_answer(page, pets, file):
    """Waits for the answer that the SavedModel gives for a file."""
    answer = loaded(pets.folder / "1")(image_bytes=tf.constant([file]))
    outputs = {name: value.numpy() for name, value in answer.items()}
    scores = [f"{score:.2f}" for score in outputs["scores"][0]]
    # Waited for: an earlier answer may have the same highest score.
    values = playwright.expect(page.locator("#bars .value"))
    values.to_have_text(scores, timeout=20_000)
    assert page.inner_text("#score") == max(scores)
    assert page.inner_text("#winner") == outputs["class_names"][0].decode()
    assert page.locator("#bars .name").all_inner_texts() == [*served.CLASSES]
    assert page.locator("#entries div").count() == 4
    assert page.inner_text("#took").startswith("Answered in ")
    assert page.inner_text("#message") == ""
    assert shown(page, "#seen img").shape == (*served.SHAPE[:2], 4)


def shown(page, selector):
    """The pixels of a picture of the page, RGBA."""
    rows = page.eval_on_selector(
        selector,
        """async (image) => {
          await image.decode();
          const canvas = new OffscreenCanvas(image.naturalWidth,
                                             image.naturalHeight);
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0);
          const {data} = context.getImageData(0, 0, canvas.width,
                                              canvas.height);
          return [canvas.height, canvas.width, [...data]];
        }""",
    )
    return np.array(rows[2], np.uint8).reshape(*rows[:2], 4)


def choose(page, name, content, kind="image/png"):
    page.set_input_files(
        "#file", {"name": name, "mimeType": kind, "buffer": content}
    )


def test_a_sample_is_answered_on_load_and_on_a_click(opened, server, pets):
    page = opened(server.port)
    samples = pets.model.current.samples
    expect_answer(page, pets, samples["0_cat.png"])
    image = np.asarray(Image.open(io.BytesIO(samples["0_cat.png"])))
    np.testing.assert_array_equal(shown(page, "#seen img")[..., :3], image)
    assert page.inner_text("#seen") == "The network’s input: 8 × 8"
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
        "Choose images",
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
    page.locator("#took").wait_for()
    with page.expect_request("**/*:predict") as request:
        choose(page, "photo.jpg", stored.getvalue(), "image/jpeg")
    (sent,) = request.value.post_data_json["instances"]
    assert served.base64.b64decode(sent["b64"]) == stored.getvalue()
    turned = read_image(io.BytesIO(stored.getvalue()), (40, 40))
    expect_answer(page, pets, served.png(turned))
    seen = shown(page, "#seen img")[..., :3].astype(int)
    assert abs(seen - corners[::5, ::5]).mean() < 10


def test_what_is_too_large_for_the_server_is_redrawn(opened, server, pets):
    page = opened(server.port)
    page.locator("#took").wait_for()
    with page.expect_request("**/*:predict") as request:
        choose(page, "a.png", served.png(Image.new("RGB", (5000, 3500))))
    (sent,) = request.value.post_data_json["instances"]
    content = served.base64.b64decode(sent["b64"])
    with Image.open(io.BytesIO(content)) as image:
        assert (image.format, image.size) == ("PNG", (1024, 717))
    expect_answer(page, pets, content)


def test_several_images_are_answered_one_by_one(opened, server, pets):
    page = opened(server.port)
    page.locator("#took").wait_for()
    files = [served.png(image) for image in served.images(3, seed=8)]
    page.set_input_files(
        "#file",
        [
            {"name": name, "mimeType": "image/png", "buffer": file}
            for name, file in zip(
                ("a.png", "notes.png", "c.png"),
                (files[0], b"no image", files[2]),
                strict=True,
            )
        ],
    )
    tiles = page.locator("#several button")
    page.locator("#several button:nth-child(3):enabled").wait_for()
    expect_answer(page, pets, files[0])
    assert tiles.count() == 3
    assert tiles.nth(0).get_attribute("aria-current") == "true"
    tiles.nth(2).click()
    expect_answer(page, pets, files[2])
    assert tiles.nth(0).get_attribute("aria-current") is None
    assert tiles.nth(2).inner_text().split() == [
        page.inner_text("#winner"), "c.png"
    ]  # fmt: skip
    tiles.nth(1).click()
    words = "notes.png: This file is not an image"
    page.locator("#message.alarm", has_text=words).wait_for()
    page.click("#samples button")
    expect_answer(page, pets, pets.model.current.samples["0_cat.png"])
    assert not page.locator("#several").is_visible()


def test_the_line_for_a_shell_gives_the_same_answer(
    opened, server, pets, tmp_path
):
    page = opened(server.port, permissions=["clipboard-write"])
    page.locator("#took").wait_for()
    name = "it's a $(photo).jpg"
    photo = served.images(1, shape=(400, 400, 3))[0]
    file = served.png(photo, "JPEG", quality=95)
    assert len(file) > 150_000  # more than one argument of a shell holds
    (tmp_path / name).write_bytes(file)
    choose(page, name, file, "image/jpeg")
    expect_answer(page, pets, file)
    page.click("#copy")
    page.locator("#copy", has_text="Copied").wait_for()
    done = subprocess.run(
        ["sh", "-c", page.inner_text("#command")],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    (prediction,) = json.loads(done.stdout)["predictions"]
    assert prediction["class_names"] == page.inner_text("#winner")
    assert f"{max(prediction['scores']):.2f}" == page.inner_text("#score")


def draw_a_stroke(page):
    """Draws on the open pad; returns the image file that is sent."""
    box = page.locator("#pad").bounding_box()
    with page.expect_response("**/*:predict") as response:
        page.mouse.move(box["x"] + 30, box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + 200, box["y"] + 200, steps=4)
        page.mouse.up()
    assert response.value.ok
    (sent,) = response.value.request.post_data_json["instances"]
    return served.base64.b64decode(sent["b64"])


@pytest.mark.parametrize("width", [1280, 390])
def test_a_drawing_is_classified(opened, server, width):
    page = opened(server.port, width, has_touch=width == 390)
    page.locator("#took").wait_for()
    page.click("#draw")
    assert not page.locator("#answer").is_visible()
    content = draw_a_stroke(page)
    with Image.open(io.BytesIO(content)) as image:
        grey = np.asarray(image.convert("L")).astype(int)
    assert grey[0, -1] > 200  # paper
    assert grey[len(grey) // 4, len(grey) // 4] < 50  # ink
    page.locator("#answer").wait_for()
    with page.expect_response("**/*:predict"):
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
    page.locator("#took").wait_for()
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
        page.locator("#took").wait_for()
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


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    """A server of a model with a decoder, and its decoder."""
    folder = tmp_path_factory.mktemp("served") / "pets"
    version = served.export_small(folder, decoder=True)
    draw = tf.saved_model.load(str(version)).signatures["reconstruct"]
    with served.listening(served.Served(folder).app) as server:
        server.draw = draw
        server.version = version
        yield server


def expect_drawn(page, server, file, moves=()):
    """Waits for what the decoder draws of a file's winner, entries moved."""
    answer = loaded(server.version)(image_bytes=tf.constant([file]))
    winner = int(answer["class_ids"][0])
    capsules = np.zeros((1, 3, 4), np.float32)
    capsules[0, winner] = answer["capsules"][0, winner]
    for entry, offset in moves:
        capsules[0, winner, entry] += offset
    expected = server.draw(capsules=tf.constant(capsules))["images"].numpy()
    words = "Recalled from the capsule alone"
    if moves:
        words = (
            f"Recalled, {len(moves)} entr{'y' if len(moves) == 1 else 'ies'}"
        )
    page.locator("#recalled", has_text=words).wait_for()
    page.wait_for_function(
        """(expected) => {
          const {width, height} = drawn;
          if (!width) return false;
          const {data} = drawn.getContext("2d")
            .getImageData(0, 0, width, height);
          return expected.flat(2).every((value, place) =>
            Math.abs(data[place + Math.floor(place / 3)] - 255 * value) < 2);
        }""",
        arg=expected[0].tolist(),
    )
    label = page.get_attribute("#drawn", "aria-label")
    name = answer["class_names"][0].numpy().decode()
    assert label.startswith(f"“{name}”. {words}")


def test_a_slider_moves_an_entry_and_the_picture_follows(opened, drawing):
    page = opened(drawing.port)
    sample = (drawing.version / "assets.extra/samples/0_cat.png").read_bytes()
    expect_drawn(page, drawing, sample)
    sliders = page.locator("#sliders input")
    assert sliders.count() == 4
    assert not page.locator("#capsule").is_visible()
    assert not page.locator("#reset").is_enabled()
    np.testing.assert_array_equal(
        shown(page, "#original"), shown(page, "#seen img")
    )
    entry = float(
        sliders.nth(0).get_attribute("aria-valuetext").replace("−", "-")
    )
    sliders.nth(2).fill("0.2")
    expect_drawn(page, drawing, sample, [(2, 0.2)])
    sliders.nth(0).fill("-0.15")
    expect_drawn(page, drawing, sample, [(2, 0.2), (0, -0.15)])
    told = sliders.nth(0).get_attribute("aria-valuetext").replace("−", "-")
    assert float(told) == pytest.approx(entry - 0.15, abs=0.011)
    page.click("#reset")
    expect_drawn(page, drawing, sample)
    assert page.evaluate("document.activeElement.ariaLabel") == "Entry 0"


def test_sliders_are_moved_from_the_keyboard(opened, drawing):
    page = opened(drawing.port)
    sample = (drawing.version / "assets.extra/samples/0_cat.png").read_bytes()
    expect_drawn(page, drawing, sample)
    slider = page.get_by_role("slider", name="Entry 1")
    slider.focus()
    page.keyboard.press("End")
    expect_drawn(page, drawing, sample, [(1, 0.25)])
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    expect_drawn(page, drawing, sample, [(1, 0.25), (2, -0.25)])


def test_the_last_of_many_moves_is_the_one_on_show(opened, drawing):
    """While a question is under way the others wait, and only the last."""
    page = opened(drawing.port)
    sample = (drawing.version / "assets.extra/samples/0_cat.png").read_bytes()
    expect_drawn(page, drawing, sample)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        """() => {
          const slider = document.querySelector("#sliders input");
          for (let value = -25; value <= 20; value += 1) {
            slider.value = value / 100;
            slider.dispatchEvent(new Event("input"));
          }
        }"""
    )
    expect_drawn(page, drawing, sample, [(0, 0.2)])
    assert len(asked) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_drawing_is_recalled_at_once_on_any_screen(
    opened, drawing, width, scheme
):
    page = opened(drawing.port, width, color_scheme=scheme)
    page.locator("#took").wait_for()
    page.click("#draw")
    assert not page.locator("#decoder").is_visible()
    expect_drawn(page, drawing, draw_a_stroke(page))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for place in range(4):
        box = page.locator("#sliders input").nth(place).bounding_box()
        assert box["width"] > 80
        assert box["x"] + box["width"] <= width


def test_without_a_decoder_nothing_of_it_is_seen(opened, server):
    page = opened(server.port)
    page.locator("#took").wait_for()
    assert page.locator("#capsule").is_visible()
    assert not page.locator("#decoder").is_visible()
    assert page.locator("#sliders input").count() == 0


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
