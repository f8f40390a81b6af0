"""A headless Chromium, driven by its chromedriver."""

import base64
import contextlib
import http.client
import json
import os
import re
import subprocess
import time

DESKTOP = (1280, 900)
PHONE = (360, 780)  # narrower than most

# Texts with less contrast to what is behind them than WCAG 2.1 asks for (AA: 4.5, 3 where they are large).
CONTRAST = """
const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((v) => v / 255)
  .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (one) => { for (; one; one = one.parentElement) { const c = getComputedStyle(one).backgroundColor;
  if (!c.endsWith(', 0)')) return c; } return 'rgb(255, 255, 255)'; };
const bad = [];
for (const one of document.querySelectorAll('body *')) {
  if (!one.checkVisibility() || one.closest('script, .unseen, .tip, :disabled')) continue;
  if (![...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
  const style = getComputedStyle(one), a = light(style.color), b = light(behind(one));
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5))
    bad.push(`${contrast.toFixed(2)} ${one.outerHTML.slice(0, 80)}`);
}
return bad;
"""


class Browser:
    """The W3C WebDriver protocol, as much of it as is needed here."""

    def __init__(self, folder, screenshots):
        self.screenshots = screenshots  # a folder, or None
        self.log = open(folder / "chromedriver.log", "w+", encoding="utf-8")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=self.log, stderr=subprocess.STDOUT,
                                       env={**os.environ, "HOME": str(folder)}, start_new_session=True)
        try:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.wait_for_port(), timeout=60)
            words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--force-color-profile=srgb",
                     f"--user-data-dir={folder / 'browser'}"]
            self.path = ""
            answer = self.send("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"args": words}, "goog:loggingPrefs": {"browser": "ALL"}}}})
            self.path = f"/session/{answer['sessionId']}"
        except BaseException:
            self.close()
            raise

    def wait_for_port(self):
        for _ in range(300):
            self.log.seek(0)
            found = re.search(r"started successfully on port (\d+)", self.log.read())
            if found:
                return int(found[1])
            if self.driver.poll() is not None:
                break
            time.sleep(0.1)
        self.log.seek(0)
        raise RuntimeError(f"chromedriver did not start: {self.log.read()}")

    def close(self):
        with contextlib.suppress(Exception):
            self.send("DELETE", "")
        self.driver.terminate()
        self.driver.wait(20)
        self.log.close()

    def send(self, method, path, body=None):
        payload = json.dumps(body if body is not None else {}) if method == "POST" else None
        self.connection.request(method, self.path + path, payload, {"Content-Type": "application/json"})
        answer = json.loads(self.connection.getresponse().read())["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{path}: {answer['message']}")
        return answer

    def command(self, name, **parameters):
        """Of the DevTools protocol."""
        return self.send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def show_as(self, size, scheme="light"):
        self.size = size
        self.command("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                     deviceScaleFactor=1, mobile=size == PHONE)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, page, hash_of_it=""):
        if hash_of_it:  # else the browser goes there in the page that it has
            self.send("POST", "/url", {"url": "about:blank"})
        self.send("POST", "/url", {"url": page.as_uri() + hash_of_it})

    def run(self, script, *arguments):
        return self.send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return list(self.send("POST", "/element", {"using": "css selector", "value": selector}).values())[0]

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})",
                 selector)
        self.send("POST", f"/element/{self.find(selector)}/click")

    def keys(self, selector, text):
        self.send("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def text(self, selector="main"):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def pointer(self, kind, x, y):
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                     buttons=0 if kind == "mouseReleased" else 1)

    def drag(self, selector, begin, end):
        """Across an element, from one part of its width to another."""
        left, top, width, height = self.run("""const one = document.querySelector(arguments[0]);
            one.scrollIntoView({block: 'center', behavior: 'instant'});
            const box = one.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]""", selector)
        at = [(left + part * width, top + height / 2) for part in (begin, (begin + end) / 2, end)]
        self.pointer("mousePressed", *at[0])
        for place in at:
            self.pointer("mouseMoved", *place)
        self.pointer("mouseReleased", *at[2])

    def rows(self, selector):
        """Of a table that is filled once its <details> is open, which the browser tells the page a moment later."""
        for _ in range(50):
            rows = self.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
                            ".map((row) => row.innerText)", selector)
            if rows:
                break
            time.sleep(0.1)
        return rows

    def picture(self, selector):
        return self.run("return document.querySelector(arguments[0]).toDataURL()", selector)

    def complaints(self):
        """Of the page; that its canvases are read is the doing of these tests."""
        return [entry["message"] for entry in self.send("POST", "/se/log", {"type": "browser"})
                if "willReadFrequently" not in entry["message"]]

    def screenshot(self, name):
        if not self.screenshots:
            return
        # The whole page, not just what the window shows.
        width, height = self.size
        full = self.run("return document.documentElement.scrollHeight")
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=full,
                     deviceScaleFactor=1, mobile=self.size == PHONE)
        (self.screenshots / f"{name}.png").write_bytes(base64.b64decode(self.send("GET", "/screenshot")))
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=self.size == PHONE)
