"""A real Chromium for the tests of the page, driven over its debugging pipe (no other package)."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATH = next((found for found in map(shutil.which, NAMES) if found), None)
needs_browser = pytest.mark.skipif(
    PATH is None,
    reason="there is no Chromium to open the page in (Debian: apt install chromium)",
)
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--mute-audio"]
# plotly draws with WebGL; here in software
OPTIONS += ["--enable-unsafe-swiftshader", "--remote-debugging-pipe"]
# nothing may be fetched: every name is unknown
OPTIONS += ["--host-resolver-rules=MAP * ~NOTFOUND", "--no-first-run"]


class Page:
    """An open page: `run` JavaScript in it, move the mouse over it, take its picture."""

    def __init__(self, path: Path, folder: Path, size=(1100, 700), options=()):
        # the browser reads commands from its descriptor 3 and answers on 4
        to_browser, self._send = os.pipe()
        self._receive, from_browser = os.pipe()

        def connect():
            commands, answers = (
                os.dup2(fd, 50 + k) for k, fd in enumerate([to_browser, from_browser])
            )
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        command = [PATH, *OPTIONS, *options, f"--user-data-dir={folder / 'profile'}"]
        command += [f"--window-size={size[0]},{size[1]}", "about:blank"]
        self._process = subprocess.Popen(
            command,
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers, self._buffer, self.errors = itertools.count(1), b"", []
        self._session = None
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attach = {"targetId": page["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", **attach)["sessionId"]
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        for domain in ("Runtime", "Page", "Network"):
            self.call(f"{domain}.enable")
        self.requests: list[str] = []
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("document.readyState === 'complete'")

    def call(self, method: str, **parameters):
        """Send a command and return its result; what happens meanwhile is kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(answer["params"]["exceptionDetails"])
            elif answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])

    def _next(self) -> dict:
        while b"\0" not in self._buffer:
            received = os.read(self._receive, 1 << 16)
            assert received, "Chromium ended"
            self._buffer += received
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def run(self, script: str):
        """The value of an expression in the page; promises are waited for."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, condition: str, tries: int = 200):
        for _ in range(tries):
            if self.run(condition):
                return
            self.run("new Promise(done => setTimeout(done, 50))")
        raise AssertionError(f"never came: {condition}")

    def mouse(self, kind: str, x: float, y: float, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, places, shift: bool = False):
        """Press at the first place, move along the others, release at the last."""
        keys = {"modifiers": 8 if shift else 0}
        self.mouse("mouseMoved", *places[0], **keys)
        self.mouse("mousePressed", *places[0], button="left", clickCount=1, **keys)
        for place in places[1:]:
            self.mouse("mouseMoved", *place, button="left", buttons=1, **keys)
        self.mouse("mouseReleased", *places[-1], button="left", clickCount=1, **keys)

    def click(self, selector: str):
        x, y = self.run(
            f"(b => [b.x + b.width / 2, b.y + b.height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        self.drag([(x, y), (x, y)])

    def key(self, name: str):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def screenshot(self, path: Path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        os.close(self._send)
        os.close(self._receive)
        self._process.terminate()
        self._process.wait(timeout=20)
