"""One headless Chromium for many pages, spoken to over two pipes in the DevTools protocol."""

import base64
import fcntl
import json
import os
import shutil
import signal
from pathlib import Path

LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")
OPTIONS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--force-color-profile=srgb",
)  # fmt: skip
DEADLINE = 120  # seconds without an answer, after which the browser is ended
TALLEST = 16_000  # pixels that one view may have
HIGH = 10  # descriptors from here on are free for copies


class Browser:
    """Starts with `with`; `open` a page, then `view` it at widths and in schemes."""

    def __init__(self, profile):
        self.profile = profile
        self.number, self.session, self.events = 0, None, []

    def __enter__(self):
        program = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
        assert program, "chromium is not installed: these tests open pages in a real browser"
        pipes = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, HIGH) for end in (*os.pipe(), *os.pipe())]
        hears, self.asks, self.answers, says = pipes
        quiet = [(os.POSIX_SPAWN_OPEN, end, os.devnull, os.O_RDWR, 0) for end in (0, 1, 2)]
        joined = [(os.POSIX_SPAWN_DUP2, hears, 3), (os.POSIX_SPAWN_DUP2, says, 4)]
        words = [program, *OPTIONS, f"--user-data-dir={self.profile}", "about:blank"]
        self.process = os.posix_spawn(
            program, words, os.environ, file_actions=[*quiet, *joined], setpgroup=0
        )
        os.close(hears)
        os.close(says)
        self.rest = b""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.killpg(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.asks)
        os.close(self.answers)

    def ask(self, method, **given):
        """The answer to one command; what happens meanwhile is kept as events."""
        self.number += 1
        words = {"id": self.number, "method": method, "params": given}
        if self.session is not None:
            words["sessionId"] = self.session
        os.write(self.asks, json.dumps(words).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self.number:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]

    def _next(self):
        while b"\0" not in self.rest:
            signal.alarm(DEADLINE)
            part = os.read(self.answers, 1 << 20)
            signal.alarm(0)
            assert part, "the browser has ended"
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\0")
        said = json.loads(line)
        if "id" not in said:
            self.events.append(said)
        return said

    def open(self, address):
        """Load a page; return what it fetched beside itself and what the console said."""
        self.events = []
        self.ask("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()
        return self.heard()

    def heard(self):
        """Requests other than the page, console lines and errors since the page was opened."""
        found, first = [], True
        for event in self.events:
            name, given = event["method"], event["params"]
            if name == "Network.requestWillBeSent":
                found += [] if first else [f"request {given['request']['url'][:100]}"]
                first = False
            elif name in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                found.append(f"{name} {json.dumps(given)[:300]}")
        return found

    def run(self, expression):
        """The value of an expression in the page, whatever its policy says of scripts."""
        given = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in given, given["exceptionDetails"]
        return given["result"].get("value")

    def view(self, width, scheme="light", media="screen"):
        """Show the page as high as it is: every text can then be asked what lies behind it."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[feature])
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        height = self.run("Math.ceil(document.documentElement.getBoundingClientRect().height)")
        size["height"] = min(max(height, 100), TALLEST)
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def faults(self):
        """What is wrong with the present view: scripts, overflow, contrast, missing words."""
        return self.run(LOOK)

    def picture(self, path):
        """The present view as a PNG."""
        Path(path).write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
