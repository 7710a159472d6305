"""Drives the page of apps/web in headless Chromium."""

import base64
import contextlib
import shutil
import threading

import pytest
from load_app import APPS, load_app

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",  # allows the camera without a question
]
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def open_browser():
    """Yields a browser, or skips the test with the reason."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    if not (APPS / "web" / "node_modules" / "@litertjs" / "core").is_dir():
        pytest.skip("LiteRT.js is not installed in apps/web/node_modules; `make web` installs it")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@contextlib.contextmanager
def serve_models(directory, serve=None):
    """Yields the port of the page with the models of a folder, by a module of the server."""
    with (serve or load_app("serve")).make_server(0, directory) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:  # or the thread would keep the process of a failed test
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def open_page(browser, address, script=None, **context_options):
    """Yields the page, ready for a picture; then checks that it contacted no other server.

    Args:
        script: JavaScript to run before the page's scripts.
    """
    with contextlib.closing(browser.new_context(**context_options)) as context:
        asked, thrown = [], []
        context.on("request", lambda request: asked.append(request.url))
        context.on("weberror", lambda error: thrown.append(error.error))
        page = context.new_page()
        page.set_default_timeout(30_000)
        if script:
            page.add_init_script(script)
        page.goto(address)
        page.locator("select option").first.wait_for(state="attached")
        yield page
        assert [url for url in asked if not url.startswith((address, "blob:", "data:"))] == []
        assert asked
        assert thrown == []


def as_text(data):
    """Returns bytes as base64 for `evaluate`; `BYTES` decodes them in the page."""
    return base64.b64encode(data).decode()


BYTES = "const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));"
MODULES = ("confidence", "decode", "head", "model", "prepare", "resample", "text-model", "tokens")


def call(page, script, given=None):
    """Runs a script on `given` with the page's modules, of which text-model.js is `text_model`.

    `bytes` decodes base64, `read` a picture in base64, and `open` and `openText` load the model of
    a name.
    """
    imports = [f'const {name.replace("-", "_")} = await import("./{name}.js");' for name in MODULES]
    return page.evaluate(
        f"""async (given) => {{
          {BYTES}
          {" ".join(imports)}
          const read = (text) => decode.decode(new Blob([bytes(text)]));
          const at = (name) => ({{ name, url: `/models/${{name}}.tflite` }});
          const open = (name) => model.loadModel(at(name));
          const openText = (name) => text_model.loadTextModel(at(name));
          {{ {script} }}
        }}""",
        given,
    )


def choose(page, data, name="picture.png", kind="image/png"):
    """Chooses a file with the page's button."""
    page.set_input_files("#file", {"name": name, "mimeType": kind, "buffer": data})


# Returns the classes of an answer with their percentages; nothing while the page has none.
ANSWER = """() => {
  const answer = document.querySelector("#answer.found");
  const rows = [...document.querySelectorAll("#classes li")];
  if (!answer || (!rows.length && !answer.textContent.startsWith("Not one"))) return null;
  const text = (row, name) => row.querySelector(name).innerText;
  return rows.map((row) => [text(row, ".label"), parseFloat(text(row, ".percent"))]);
}"""


def read_answer(page):
    """Waits for an answer and returns its (label, percentage) pairs."""
    return [tuple(pair) for pair in page.wait_for_function(ANSWER).json_value()]


def give(page, event, pictures, target="body", name="given.png"):
    """Simulates dropping or pasting files on the first element of a selector."""
    script = f"""([event, files, target, name]) => {{
      {BYTES}
      const transfer = new DataTransfer();
      for (const file of files) transfer.items.add(new File([bytes(file)], name));
      const options = {{ bubbles: true, cancelable: true }};
      document.querySelector(target).dispatchEvent(
        event === "drop"
          ? new DragEvent(event, {{ ...options, dataTransfer: transfer }})
          : new ClipboardEvent(event, {{ ...options, clipboardData: transfer }}),
      );
    }}"""
    page.evaluate(script, [event, [as_text(picture) for picture in pictures], target, name])


def read_problem(page, place="#problem"):
    """Waits for an error and returns its line."""
    page.locator(f"{place}:not(:empty)").wait_for()
    line = page.inner_text(place)
    assert "\n" not in line
    return line
