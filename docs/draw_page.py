"""Draws the pictures of the page in docs/: web.png, web-map.png, web-text.png and web-teach.png.

PYTHONPATH=tests .venv/bin/python docs/draw_page.py

Requires Chromium and `make web`.
"""

from pathlib import Path

from pictures import encode
from PIL import Image
from sklearn.datasets import load_digits
from web_page import open_browser, open_page, serve_models

DOCS = Path(__file__).parent
WIDTH = 1080
TEXT = "The second world [MASK] ended in 1945, and the [MASK] was signed in 1947."


def main():
    with open_browser() as browser, serve_models(DOCS.parent / "saved_models") as address:
        for draw in (draw_picture, draw_text, draw_teach):
            size = {"width": WIDTH, "height": 600}
            with open_page(browser, address, viewport=size) as page:
                draw(page)


def draw_picture(page):
    page.set_input_files("#file", DOCS / "cat.jpg")
    page.locator("#answer.found").wait_for()
    save(page, "web.png")
    label = page.locator("#classes .label").first.inner_text()
    page.select_option("#map", label=f"What speaks for {label}")
    page.locator("#legend").wait_for()
    save(page, "web-map.png")


def draw_text(page):
    page.click("#tab-texts")
    page.select_option("#text-model", "amlp_nano-wiki")
    page.fill("#text", TEXT)
    page.locator(".word").nth(9).wait_for()
    save(page, "web-text.png")


def draw_teach(page):
    page.click("#tab-teach")
    page.locator("#teach-model option").first.wait_for(state="attached")
    found = load_digits()
    for place, (name, digit) in enumerate({"zero": 0, "one": 1}.items()):
        images = found.images[found.target == digit]
        page.get_by_label("Name").nth(place).fill(name)
        files = [picture(f"{name}-{i}.png", image) for i, image in enumerate(images[::17][:10])]
        page.locator(".files").nth(place).set_input_files(files)
    page.locator(".thumbnails img").nth(19).wait_for()
    page.click("#learn")
    page.locator("#teach-status", has_text="Knows").wait_for()
    page.set_input_files("#try", picture("try.png", found.images[found.target == 0][20]))
    page.locator("#teach-answer.found").wait_for()
    save(page, "web-teach.png")


def picture(name, image):
    """Returns a digit as a file for the page."""
    grey = Image.fromarray((image * 255 / 16).astype("uint8")).resize((64, 64))
    return {"name": name, "mimeType": "image/png", "buffer": encode(grey)}


def save(page, name):
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(0, 0)
    page.screenshot(path=DOCS / name, full_page=True)


if __name__ == "__main__":
    main()
