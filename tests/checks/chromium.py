"""Drives a headless Chromium through its DevTools pipe: open a page, press keys, look at the DOM.

Nothing but Python's own library: the protocol is JSON with a NUL behind each message, on the
browser's file descriptors 3 (to it) and 4 (from it).
"""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell")

KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""),
        "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowUp": ("ArrowUp", 38, ""),
        "ArrowRight": ("ArrowRight", 39, ""), "ArrowDown": ("ArrowDown", 40, ""),
        "PageUp": ("PageUp", 33, ""), "PageDown": ("PageDown", 34, ""), "End": ("End", 35, ""),
        "Home": ("Home", 36, ""), "Space": ("Space", 32, " ")}


def find():
    """Returns the path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page. `problems` are its console's errors and whatever it asked of a
    network."""

    def __init__(self, path, width=1440, height=900):
        self.home = tempfile.TemporaryDirectory(prefix="uptier-chromium-", ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()
        command = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--remote-debugging-pipe", f"--user-data-dir={self.home.name}",
                   f"--window-size={width},{height}", "--hide-scrollbars=false", "about:blank"]
        # The pipe's ends may have any numbers here; Chromium needs them to be 3 and 4.
        shell = f"exec 3<&{to_browser} 4>&{from_browser} {to_browser}<&- {from_browser}>&-; exec \"$@\""
        if {to_browser, from_browser} & {3, 4}:
            shell = f"exec 8<&{to_browser} 9>&{from_browser}; exec 3<&8 4>&9 8<&- 9>&-; exec \"$@\""
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *command],
                                        pass_fds=(to_browser, from_browser),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session = b"", 0, None
        self.problems, self.events = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.inp)
        self.home.cleanup()

    def _receive(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.inp, 1 << 20)
            if not piece:
                raise RuntimeError(f"the browser has ended (exit code {self.process.poll()})")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        method, p = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = p["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.problems.append("console: " + str([a.get("value") for a in p["args"]]))
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.problems.append("log: " + p["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = p["request"]["url"]
            if not url.startswith(("file:", "about:")):
                self.problems.append("asked a network for " + url[:200])
        self.events.append(method)

    def call(self, method, timeout=60, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + timeout
        while True:
            answer = self._receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression (a promise is waited for)."""
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"].get("exception", {}).get("description", str(r)))
        return r["result"].get("value")

    def open(self, url, scheme="light"):
        """Opens a page and waits until its script is done. Returns the seconds since it was asked."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        start = time.monotonic()
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self._note(self._receive(start + 60))
        # Waits for the first frame that is drawn.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - start

    def press(self, key, shift=False, times=1):
        """Presses a key as a keyboard does: the browser moves the focus itself."""
        code, number, text = KEYS[key] if key in KEYS else (key, ord(key.upper()), key)
        name = " " if key == "Space" else key
        for _ in range(times):
            common = {"key": name, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown",
                      **common, **({"text": text} if text else {}))
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def settle(self):
        self.evaluate("new Promise(done => setTimeout(() => requestAnimationFrame(done), 60))")

    def screenshot(self, path):
        import base64
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
