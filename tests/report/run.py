#!/usr/bin/env python3
"""Clicks through the page of `papaya report --html` in a headless Chromium.

  run.py --build DIR --mpi openmpi|mpich [--screenshots DIR]     exit code 77 if it cannot be run here
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from browser import CONTRAST, DESKTOP, PHONE, Browser

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "preload" / "late_rank.c"
options = None


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="papaya-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = Browser(cls.folder, options.screenshots)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.show_as(DESKTOP)

    def page_of(self, folder, code=0):
        page = folder / "report.html"
        made = subprocess.run([options.build / "papaya", "report", "--html", "-o", page, folder],
                              stderr=subprocess.PIPE, text=True,
                              check=False)
        self.assertEqual(made.returncode, code, made.stderr)
        return page

    def synthetic(self, name, ranks, nodes, calls, *kept):
        folder = self.folder / name
        folder.mkdir()
        program = options.build / "tests" / "report" / "synthetic_run"
        subprocess.run([program, folder, str(ranks), str(nodes), str(calls), *map(str, kept)],
                       check=True)
        return folder

    def check_quiet(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.run("return performance.getEntriesByType('resource').map((one) => one.name)"), [])

    def check_no_sideways(self):
        wide = self.browser.run("""return [...document.querySelectorAll('body *')].filter((one) =>
            !one.closest('.scroll, nav, .skip, .unseen') && one.getBoundingClientRect().right > innerWidth + 1)
            .map((one) => one.outerHTML.slice(0, 100))""")
        self.assertEqual(wide, [])
        self.assertEqual(self.browser.run("return document.documentElement.scrollWidth"),
                         self.browser.run("return innerWidth"))

    def late_rank_run(self):
        """A real job, whose rank 3 is late at every third call."""
        folder = self.folder / "late"
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("PAPAYA_") and name != "LD_PRELOAD"}
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_pml="ob1",
                           PAPAYA_OUTPUT=str(folder))
        launcher = ["mpirun.mpich"]
        if options.mpi == "openmpi":
            launcher = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
        # Its ranks share cores: on a busy machine another one is late as often.
        for _ in range(4):
            subprocess.run([*launcher, "-n", "4", options.build / "papaya", "run",
                            options.build / "tests" / "report" / f"late_rank-{options.mpi}"],
                           env=environment, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           check=True, timeout=120)
            if json.loads((folder / "report.json").read_text())["call_sites"][0]["pattern"] == "persistent":
                break
        return folder

    def test_late_rank(self):
        """The late rank, its function and its line, in text, JSON and on the page."""
        line = next(number for number, text in enumerate(SOURCE.read_text().splitlines(), 1)
                    if "line of late_work" in text)
        place = f"late_work (late_rank.c:{line})"
        folder = self.late_rank_run()
        page = self.page_of(folder)
        text = subprocess.run([options.build / "papaya", "report", folder], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        self.assertIn(place, text)
        self.assertIn("persistent straggler, rank 3", text)
        data = json.loads(subprocess.run([options.build / "papaya", "report", "--json", folder], stdout=subprocess.PIPE,
                                         check=True).stdout)
        site = data["call_sites"][0]
        self.assertEqual((site["pattern"], site["straggler"]), ("persistent", 3))
        self.assertGreaterEqual(site["predictability"], 0.5)
        self.assertGreaterEqual(site["uneven_calls"], 20)

        self.browser.open(page)
        self.check_quiet()
        shown = self.browser.text()
        self.assertEqual(browser_text(self.browser, "h1"), data["verdict"])
        self.assertEqual(browser_text(self.browser, "#in-short"), data["in_short"])
        self.assertEqual(browser_text(self.browser, "#next ol"), "".join(data["next"]))
        # What is read first comes first, and then the picture that shows it.
        order = self.browser.run("return ['h1', '#in-short', '#next', '#heat', '#tiles', '#ranks']"
                                 ".map((one) => document.querySelector(one).getBoundingClientRect().top)")
        self.assertEqual(order, sorted(order))
        self.assertLess(order[3], DESKTOP[1] - 200)
        self.assertIn(place, shown)
        self.assertIn("persistent straggler: rank 3", shown)
        self.assertRegex(self.browser.text("#tiles"), r"rank 3\b")
        self.assertTrue(self.browser.text("#ranks tbody tr").startswith("3"))
        # All calls are there, and at most of every third rank 3 is the last.
        self.browser.keys("#call-number", "\ue011")
        self.browser.run("""const readout = document.querySelector('#call-readout');
            window.readouts = [readout.innerText];
            new MutationObserver(() => window.readouts.push(readout.innerText)).observe(readout, {childList: true})""")
        self.browser.keys("#call-number", "\ue014" * 60)
        readouts = set(self.browser.run("return window.readouts"))
        self.assertEqual(len(readouts), 60)
        self.assertGreaterEqual(sum("rank 3 last" in readout for readout in readouts), 12)
        self.check_waiting_cells()
        self.assertIn("late_rank", self.browser.send("GET", "/title"))
        self.assertFalse(self.browser.run("return document.querySelector('#weak').checkVisibility()"))
        self.browser.screenshot("late-light")
        self.browser.show_as(DESKTOP, "dark")
        self.browser.screenshot("late-dark")
        self.browser.show_as(PHONE)
        self.browser.open(page)
        self.check_no_sideways()
        self.browser.screenshot("late-phone")

    def check_waiting_cells(self):
        """Ranks that wait most of the run for rank 3 are drawn so, not only where calls end; rank 3 is not."""
        browser = self.browser
        # By rank, the part of its row that is blue, or grey where it is inside a call and waits no longer. Rows of 28
        # pixels below the strip of time lost.
        waiting = browser.run("""const canvas = document.querySelector('#heat');
            canvas.blur();
            return [0, 1, 2, 3].map((place) => {
              const row = canvas.getContext('2d').getImageData(50, 52 + 28 * place + 14, canvas.width - 52, 1).data;
              let blue = 0;
              for (let i = 0; i < row.length; i += 4) blue += row[i + 2] > row[i] + 8;
              return blue / (row.length / 4);
            })""")
        for part in waiting[:3]:
            self.assertGreater(part, 0.6)
        self.assertLess(waiting[3], 0.8)
        browser.run("""const tip = document.querySelector('#heat-tip');
            window.tips = [];
            new MutationObserver(() => window.tips.push(tip.innerText)).observe(tip, {childList: true})""")
        browser.keys("#heat", "\ue015" + "\ue014" * 50)
        self.assertRegex("\n".join(browser.run("return window.tips")),
                         r"Rank 0\nat .*: .*it waits inside a call for [\d.]+ % of this")
        browser.keys("#heat", "\ue00c")

    def check_weak(self):
        """The section of weakly consistent collectives, of the synthetic run, and that of trials."""
        browser = self.browser
        self.check_trials()
        self.assertRegex(browser.text("#weak-table"), r"ssp_allreduce\s+<b>ssp\s+slack=40\s+1,920\s")
        self.assertRegex(browser.text("#weak-sites"), r"&amp;\.so\+0x100\s+1,920\s.*rank 3, 100 %")
        self.assertIn("<b>training", browser.text("#weak-phases"))
        label = browser.run("return document.querySelector('#weak-ages').getAttribute('aria-label')")
        self.assertIn("1,920 calls", label)

    def check_trials(self):
        """The section of online selection, of the synthetic run: what was tried; a change is a moment of the run."""
        browser = self.browser
        lines = browser.run("""return [...document.querySelectorAll('#trials-table li')].map((one) =>
            [one.children[0].innerText, one.className, one.children[2].innerText,
             one.querySelector('i').getBoundingClientRect().width])""")
        self.assertEqual([line[:3] for line in lines],
                         [[lines[0][0], "", "600 ns"], ["native", "dropped", "2.40 µs, dropped"]])
        self.assertGreater(lines[0][3], 20)
        self.assertIn("persistent, rank 3 late", browser.text("#trials-table"))
        self.assertRegex(browser.text("#trials-table"), r"\+0x100\s+<b>world</b>")
        changes = browser.run("""return [...document.querySelectorAll('#trial-changes tbody tr')].map(
            (one) => one.innerText)""")
        self.assertEqual(len(changes), 3)
        self.assertRegex(changes[1], r"random\s+persistent, rank 3 late\s+72\s")
        self.assertRegex(changes[2], r"native\s+\S+\s+80\s")
        picked = "#trial-changes tbody tr:last-child .pick"
        browser.click(picked)
        self.assertIn("at 400 ms", browser.text("#selection"))
        browser.click(picked)

    def test_controls(self):
        browser = self.browser
        browser.open(self.page_of(self.synthetic("controls", 16, 4, 2000)))
        self.check_quiet()
        # Names stay texts.
        self.assertNotIn("broken", browser.send("GET", "/title").replace("document.title='broken'", ""))
        self.assertIn("</script><script>document.title='broken'</script>", browser.text())
        self.assertIn("<img src=x onerror=alert(1)>&amp;.so", browser.text("#sites"))
        planted = "return document.querySelectorAll('img, [onerror], script:not([id]):not(:empty)').length"
        self.assertEqual(browser.run(planted), 2)
        for pattern in ("persistent straggler: rank 3", "rotating", "random", "drifting", "balanced"):
            self.assertIn(pattern, browser.text("#sites"))
        self.assertIn("± 2.50 µs between nodes", browser.text("#who"))
        for reason in ("too large", "flat", "native"):
            self.assertIn(reason, browser.text("#algorithm-table"))
        browser.screenshot("nodes-light")

        def changes(selector, what, act):
            before = browser.picture(selector)
            act()
            self.assertNotEqual(browser.picture(selector), before, what)

        changes("#heat", "worst in each cell", lambda: browser.click("input[name=heat][value=worst]"))
        # The heat map by keyboard, and from it to a call.
        browser.keys("#heat", "\ue015" * 4 + "\ue014" * 6)  # down, right
        self.assertRegex(browser.text("#heat-tip"),
                         r"Rank 3 \(node 0\)\nat .*: about .* after the first, worst call, ± 2.50 µs")
        before = browser.text("#call-readout")
        browser.keys("#heat", "\ue007")
        self.assertNotEqual(browser.text("#call-readout"), before)
        browser.keys("#heat", "\ue00c")
        self.assertFalse(browser.run("return document.activeElement !== document.querySelector('#heat')"))
        self.assertTrue(browser.run("return document.querySelector('#heat-tip').hidden"))
        browser.click("#heat")  # its middle
        self.assertIn("Rank 7", browser.text("#heat-tip"))

        # One call.
        browser.run("const choice = document.querySelector('#call-collective'); choice.value = 'MPI_Alltoall';"
                    "choice.dispatchEvent(new Event('change'))")
        self.assertIn("MPI_Alltoall, call", browser.text("#call-readout"))
        self.assertEqual(browser.run("return document.querySelector('#call-site').length"), 1)
        self.assertRegex(browser.text("#call-share"),
                         r"^\d+ of the 400 calls of this call site are here: 4 worst, \d+ evenly chosen\.$")
        worst = browser.text("#call-readout")
        self.assertIn("1.60 ms later", worst)
        browser.click("#call-previous")
        self.assertNotEqual(browser.text("#call-readout"), worst)
        browser.click("#call-next")
        self.assertEqual(browser.text("#call-readout"), worst)
        browser.keys("#call-number", "\ue011")  # home
        self.assertRegex(browser.text("#call-readout"),
                         r"call 1 on <b>world</b>, 4 KiB, by native, .* rank 0 last, 40\d µs later")
        self.assertTrue(browser.run("return document.querySelector('#call-previous').disabled"))
        browser.click("#call-worst")
        self.assertEqual(browser.text("#call-readout"), worst)
        changes("#call-chart", "order", lambda: browser.click("input[name=order][value=arrival]"))
        browser.click("#call-table summary")
        rows = browser.rows("#call-table")
        self.assertEqual(len(rows), 16)
        self.assertIn("1.60 ms", rows[0])
        browser.click("#sites .site:nth-child(3) button:not(.pick)")
        site = browser.text("#sites .site:nth-child(3) h3")
        self.assertTrue(browser.text("#call-readout").startswith(site + ", call"))
        place = browser.text("#sites .site:nth-child(3) li")
        self.assertIn(place, browser.run("return document.querySelector('#call-site').selectedOptions[0].text"))

        # Imbalance.
        changes("#factor-chart", "distribution", lambda: browser.click("input[name=view][value=distribution]"))
        self.assertIn("All 400 calls.", browser.text("#factor-share"))  # of the chosen call site's collective
        changes("#factor-chart", "within nodes", lambda: browser.click("input[name=scope][value='2']"))
        changes("#factor-chart", "average case", lambda: browser.click("input[name=case][value='1']"))
        changes("#factor-chart", "collective", lambda: browser.run(
            "const choice = document.querySelector('#factor-collective'); choice.value = 'MPI_Allreduce';"
            "choice.dispatchEvent(new Event('change'))"))
        self.assertIn("average-case, within nodes", browser.text("#factor-table"))
        self.assertEqual(browser.text("#ranks-all"), "Show all 16 ranks")
        browser.click("#ranks-all")
        self.assertEqual(browser.run("return document.querySelectorAll('#ranks tbody tr').length"), 16)
        self.check_weak()
        self.check_quiet()

    def chosen(self):
        """The texts of what is chosen, and the address's part that says so."""
        return (self.browser.text("#chips").replace("\n×", "").split("\n") if self.browser.text("#chips") else [],
                self.browser.run("return location.hash"))

    def test_linking(self):
        """What is chosen somewhere, by click or key, every other view shows; it is in the address, and goes away."""
        browser = self.browser
        page = self.page_of(self.synthetic("linking", 16, 4, 500))
        browser.open(page)
        marked = "return [...document.querySelectorAll(arguments[0] + ' .chosen')].map((one) => one.innerText)"
        pictures = {one: browser.picture(one) for one in ("#heat", "#times-chart", "#call-chart")}
        browser.keys("#ranks tbody tr:nth-child(1) .pick", "\ue007")
        self.assertEqual(self.chosen(), (["rank 3"], "#rank=3"))
        for one, before in pictures.items():
            self.assertNotEqual(browser.picture(one), before, one)
        for table in ("#ranks", "#times", "#what-if", "#sites", "#tiles"):
            self.assertIn("3", browser.run(marked, table)[0], table)
        self.assertIn("rank 3 last", browser.text("#call-readout"))
        self.assertEqual(browser.run("return document.activeElement.closest('#ranks tr').cells[0].innerText"), "3")
        # A call site, with the rank.
        browser.click("#sites .site:nth-child(2) h3 .pick")
        texts, address = self.chosen()
        self.assertEqual((len(texts), address), (2, "#rank=3&site=1"))
        self.assertTrue(any(text.startswith("all, before MPI_") for text in browser.run(marked, "#what-if")))
        self.assertEqual(browser.run("return document.querySelector('#call-site').selectedOptions[0].textContent"),
                         texts[1])
        self.assertTrue(browser.text("#call-readout").startswith(browser.text("#sites .site:nth-child(2) h3")))
        self.assertEqual(browser.run("return document.querySelector('#factor-collective').value"),
                         browser.text("#sites .site:nth-child(2) h3"))
        self.assertEqual(len(browser.run(marked, "#site-savings")), 1)
        # Back, and forth by the address alone; one that names nothing chooses nothing.
        browser.run("history.back()")
        for _ in range(50):
            if len(self.chosen()[0]) == 1:
                break
            time.sleep(0.02)
        self.assertEqual(self.chosen(), (["rank 3"], "#rank=3"))
        browser.open(page, address)
        self.assertEqual(self.chosen(), (texts, address))
        browser.keys("body", "\ue00c")
        self.assertEqual(self.chosen(), ([], ""))
        self.assertEqual(browser.run(marked, "main"), [])
        browser.open(page, "#rank=99&site=77&at=1e9&from=3&to=x&phase=%E0&what=1&__proto__=2")
        self.assertEqual(self.chosen()[0], [])
        # What ranks wait for: the call sites with that, each rank's part of it, and only their losses in the picture.
        whole = browser.picture("#heat")
        browser.keys("#waits tbody tr:nth-child(2) .pick", "\ue007")
        self.assertEqual(self.chosen(), (["waiting for all ranks, in a barrier"], "#wait=barrier"))
        self.assertEqual(browser.run("return [...document.querySelectorAll('#sites .related h3')]"
                                     ".map((one) => one.innerText)"), ["MPI_Barrier"])
        self.assertIn("waited for all ranks, in a barrier", browser.text("#ranks thead"))
        self.assertTrue(browser.text("#call-readout").startswith("MPI_Barrier"))
        self.assertIn("Only what is lost by waiting for all ranks, in a barrier", browser.text("#heat-site"))
        self.assertNotEqual(browser.picture("#heat"), whole)
        # Of four call sites together; and the other way round, a call site's kind.
        browser.click("#waits tbody tr:nth-child(1)")
        self.assertIn("Only what is lost by waiting for all ranks", browser.text("#heat-site"))
        self.assertEqual(browser.run("return document.querySelectorAll('#sites .related').length"), 4)
        browser.open(page, "#rank=3&site=0")
        self.assertEqual(browser.run("return [...document.querySelectorAll('#waits .related')]"
                                     ".map((one) => one.cells[0].innerText)"), ["for all ranks"])
        self.assertIn("rank 3", browser.text("#waits thead"))
        self.assertIn("Wait at Barrier", browser.text("#waits"))
        browser.open(page, "#wait=nothing")
        self.assertEqual(self.chosen()[0], [])
        # A costly call: moment, rank and call site.
        browser.click("#costly tbody tr:nth-child(2)")
        costly = browser.run("return document.querySelectorAll('#costly tbody tr')[1].innerText").split("\t")
        rank = costly[5].strip()
        self.assertEqual(self.chosen()[0][-1], f"at {costly[0].strip()}")
        self.assertRegex(browser.text("#call-readout"), rf"call {costly[-1].strip()} on .* rank {rank} last")
        self.assertIn("caused in sight", browser.text("#ranks thead"))
        self.assertTrue(browser.text("#ranks tbody tr").startswith(rank))
        browser.click("#clear")
        self.assertEqual(self.chosen()[0], [])
        # Phases.
        self.assertRegex(browser.text("#efficiencies"), r"the run\s+0\.\d\d\s")
        self.assertIn("<b>training", browser.text("#phase-table"))
        browser.run("[...document.querySelectorAll('#phase-table tr')].find((one) => one.innerText.includes('train'))"
                    ".click()")
        self.assertEqual(self.chosen()[0], ["phase <b>training"])
        self.assertRegex(browser.text("#call-readout"), "^MPI_All(toall|reduce), call [0-9]*[1368] ")
        self.check_quiet()

    def test_zoom(self):
        """By dragging, by buttons and keys; the other views of time follow."""
        browser = self.browser
        browser.open(self.page_of(self.synthetic("zoom", 16, 4, 1000)))  # 5 s
        whole = browser.picture("#heat")
        browser.drag("#heat", 0.3, 0.5)

        def window():
            shown = browser.run("return Object.fromEntries(location.hash.slice(1).split('&')"
                                ".map((one) => one.split('=')))")
            return (float(shown["from"]), float(shown["to"])) if "from" in shown else None

        begin, end = window()
        self.assertGreater(begin, 1)
        self.assertLess(end, 2.6)
        self.assertNotEqual(browser.picture("#heat"), whole)
        scale = browser.run("const {min, max} = Chart.getChart('factor-chart').scales.x; return [min, max]")
        self.assertEqual([round(one, 6) for one in scale], [round(begin, 6), round(end, 6)])
        self.assertIn(" of 5.00 s", browser.text("#heat-zoom"))
        self.assertIn("caused in sight", browser.text("#ranks thead"))
        self.assertGreater(browser.run("return document.querySelectorAll('#costly .outside').length"), 0)
        browser.click("#zoom-in")
        self.assertAlmostEqual(window()[1] - window()[0], (end - begin) / 2, 3)
        browser.keys("#heat", "-")
        self.assertAlmostEqual(window()[1] - window()[0], end - begin, 3)
        # Single calls, once there is room.
        self.assertEqual(browser.text("#heat-detail"), "")
        browser.keys("#heat", "+++++")
        browser.run("history.replaceState(null, '', '#from=0&to=0.02'); dispatchEvent(new PopStateEvent('popstate'))")
        self.assertRegex(browser.text("#heat-detail"), r"calls? (is|are) drawn singly")
        browser.keys("#heat", "0")
        self.assertIsNone(window())
        self.assertEqual(browser.text("#heat-zoom"), "the whole run")
        browser.run("document.querySelector('#heat').blur()")
        self.assertEqual(browser.picture("#heat"), whole)

    def warm_rows(self, ranks):
        """Of the picture of ranks over time, below the strip of time lost: the parts of the rows that are orange."""
        return self.browser.run("""const canvas = document.querySelector('#heat'), top = 52;
            const each = (canvas.height - top - 26) / arguments[0];
            return Array.from({length: arguments[0]}, (_, place) => {
              const y = Math.round(top + (place + 0.5) * each) - 1;
              const row = canvas.getContext('2d').getImageData(48, y, canvas.width - 48, 1).data;
              let warm = 0;
              for (let i = 0; i < row.length; i += 4) warm += row[i] > row[i + 2] + 25;
              return warm / (row.length / 4);
            })""", ranks)

    def test_losses_of_a_site(self):
        """A chosen call site leaves only what is lost there, which at the first one only rank 3 causes."""
        browser = self.browser
        browser.open(self.page_of(self.synthetic("losses", 16, 1, 2000)))
        self.assertGreater(sum(part > 0 for part in self.warm_rows(16)), 10)
        site, waiting = browser.run("""const {call_sites: all} =
              JSON.parse(document.querySelector('#report-data').textContent);
            const site = all.findIndex((one) => one.straggler === 3); return [site, all[site].waiting_seconds]""")
        browser.click(f"#sites .site:nth-child({site + 1}) h3 .pick")
        rows = self.warm_rows(16)
        self.assertGreater(rows[3], 0.1)
        self.assertEqual([part for rank, part in enumerate(rows) if rank != 3], [0] * 15)
        self.assertIn("Only what is lost at MPI_Allreduce in", browser.text("#heat-site"))
        self.assertTrue(browser.run("return document.querySelector('input[name=heat][value=mean]').disabled"))
        self.assertFalse(browser.run("return document.querySelector('#heat-waits').checkVisibility()"))
        # The table of late ranks follows, and has what the report says is lost at the site.
        self.assertTrue(browser.text("#ranks tbody tr").startswith("3"))
        self.assertIn("caused in sight", browser.text("#ranks thead"))
        about = re.search(r"about ([\d.]+) (m?s)", browser.text("#ranks tbody tr"))
        lost = float(about[1]) / (1000 if about[2] == "ms" else 1)
        self.assertAlmostEqual(lost, waiting, delta=0.05 * waiting)  # levels are steps of some per cent
        browser.keys("#heat", "\ue015" * 4 + "\ue014")
        self.assertRegex(browser.text("#heat-tip"), "Rank 3\n.*(at this call site the others lose|nobody waits)")
        browser.click("#clear")
        self.assertGreater(sum(part > 0 for part in self.warm_rows(16)), 10)
        self.assertEqual(browser.text("#heat-site"), "")
        self.check_quiet()

    def test_stalled(self):
        """A call that ranks 2 and 5 never came to, in the pictures: over time, and of this call."""
        browser = self.browser
        folder = self.synthetic("stalled", 16, 4, 200, 256, "stalled")
        browser.open(self.page_of(folder, 3))
        self.check_quiet()
        self.assertIn("never ended", browser.text("#call-site"))
        self.assertRegex(browser.text("#call-readout"), r"call 200 on .* never ended: ranks 0-1, 3-4, 6-15 inside, "
                                                        r"ranks 2, 5 never came")
        self.assertIn("never came to it", browser.text("#when"))
        # The last sixth of the run, on the hatched ground.
        shares = [browser.run("""const canvas = document.querySelector('#heat'), top = 52, room = canvas.width - 48;
            const each = (canvas.height - top - 26) / 16, x = Math.round(48 + 0.9 * room);
            const all = canvas.getContext('2d')
                .getImageData(x, Math.round(top + (arguments[0] + 0.2) * each), canvas.width - x, each / 2).data;
            let [warm, cold] = [0, 0];
            for (let i = 0; i < all.length; i += 4) {
              warm += all[i] > all[i + 2] + 60;
              cold += all[i + 2] > all[i] + 60;
            }
            return [warm, cold].map((one) => one / (all.length / 4))""", rank) for rank in range(16)]
        for rank, (warm, cold) in enumerate(shares):
            self.assertEqual((warm > 0.2, cold > 0.2), (rank in (2, 5), rank not in (2, 5)), (rank, warm, cold))
        browser.keys("#heat", "\ue015" * 3 + "\ue014" * 199)
        self.assertIn("never came to MPI_Allreduce, call 200", browser.text("#heat-tip"))
        browser.click("#call-table summary")
        self.assertIn("never", browser.rows("#call-table")[0])
        self.assertEqual(sum("\tnever\t0 ns" in row for row in browser.rows("#call-table")), 2)
        browser.screenshot("stalled-light")
        browser.show_as(PHONE)
        self.check_no_sideways()

    def test_scales(self):
        """By time lost, noise is not painted as what costs; by its logarithm, or by lateness, it shows."""
        browser = self.browser
        browser.open(self.page_of(self.synthetic("scales", 16, 1, 2000)))
        warm = """const canvas = document.querySelector('#heat'), top = canvas.height - 256 - 26;
            const all = canvas.getContext('2d').getImageData(48, top, canvas.width - 48, 256).data;
            let warm = 0;
            for (let i = 0; i < all.length; i += 4) warm += all[i] > all[i + 2] + 12;
            return warm / (all.length / 4)"""
        linear = browser.run(warm)
        browser.click("input[name=scale][value=log]")
        logarithm = browser.run(warm)
        self.assertLess(linear, 0.5)
        self.assertGreater(logarithm, 1.2 * linear)
        browser.click("input[name=heat][value=worst]")
        self.assertGreater(browser.run(warm), 0.9)
        browser.click("input[name=rows][value=most]")
        self.assertNotEqual(browser.run(warm), 0)
        before = browser.picture("#call-chart")
        browser.click("input[name=callscale][value=log]")
        self.assertNotEqual(browser.picture("#call-chart"), before)

    def test_whole_run(self):
        """Where the ring has wrapped, what the ranks found out meanwhile; else not."""
        browser = self.browser
        browser.open(self.page_of(self.synthetic("kept", 4, 1, 100)))
        self.assertFalse(browser.run("return document.querySelector('#whole').checkVisibility()"))
        browser.open(self.page_of(self.synthetic("wrapped", 12, 2, 1000, 256)))
        self.check_quiet()
        self.assertIn("the last 3,072 of 12,000 calls", browser.text("#whole-lead"))
        self.assertIn("compared 1,200 calls", browser.text("#whole-lead"))
        rows = browser.run("return [...document.querySelectorAll('#whole-ranks tbody tr')]"
                           ".map((row) => row.innerText.split(/\\s+/))")
        self.assertEqual(rows[0][:3], ["11", "1", "11"])
        self.assertIn("rank 11, last", browser.text("#whole-sites"))
        # What was not recorded, of every fourth rank a tenth of the run.
        self.assertIn("not recorded", browser.text("#time-key"))
        shares = browser.run("""return [...document.querySelectorAll('#times tbody tr')].map((row) =>
            [Number(row.cells[0].innerText), row.querySelector('.parts .unrecorded').getBoundingClientRect().width
              / row.querySelector('.parts').getBoundingClientRect().width])""")
        self.assertEqual(len(shares), 12)
        for rank, part in shares:
            self.assertAlmostEqual(part, 0.1 if rank % 4 == 1 else 0, delta=0.005)
        browser.screenshot("wrapped-light")
        browser.show_as(PHONE)
        self.check_no_sideways()

    def test_dark_and_phone(self):
        browser = self.browser
        browser.open(self.page_of(self.synthetic("dark", 16, 4, 500)))
        colours = "return ['body', 'section#who', 'h1', '#ranks td']" \
                  ".map((one) => getComputedStyle(document.querySelector(one)))" \
                  ".map((style) => style.color + style.backgroundColor)"
        light = browser.run(colours)
        drawn = ("#heat", "#call-chart", "#factor-chart", "#calls-chart", "#weak-ages", "#weak-waits")
        pictures = [browser.picture(one) for one in drawn]
        browser.show_as(DESKTOP, "dark")
        for one, other in zip(light, browser.run(colours)):
            self.assertNotEqual(one, other)
        for before, one in zip(pictures, drawn):
            # The page draws again once the browser tells it of the change.
            for _ in range(100):
                if browser.picture(one) != before:
                    break
                time.sleep(0.05)
            self.assertTrue(browser.picture(one) != before, f"{one} is drawn as in light colours")
        browser.screenshot("nodes-dark")
        for scheme in ("light", "dark"):
            browser.show_as(DESKTOP, scheme)
            self.assertEqual(browser.run(CONTRAST), [], scheme)
        browser.show_as(PHONE)
        self.check_no_sideways()
        # Every column is reached inside its box, beside the first.
        hidden = browser.run("""return [...document.querySelectorAll('.scroll')].filter((box) => box.checkVisibility())
            .filter((box) => { const {left, right} = box.getBoundingClientRect(); box.scrollLeft = box.scrollWidth;
              const row = box.querySelector('tbody tr');
              return Math.abs(row.lastElementChild.getBoundingClientRect().right - right) > 3
                || Math.abs(row.firstElementChild.getBoundingClientRect().left - left) > 1
                || row.lastElementChild.getBoundingClientRect().left < left; })
            .map((box) => box.innerText.slice(0, 80))""")
        self.assertEqual(hidden, [])
        # Collapsed, the line under a row would not reach below its first column.
        self.assertEqual(browser.run("return getComputedStyle(document.querySelector('#ranks')).borderCollapse"),
                         "separate")
        for box in browser.run("return [...document.querySelectorAll('details')].map((one) => { one.open = true; })"):
            self.assertIsNone(box)
        self.check_no_sideways()
        browser.screenshot("nodes-phone")
        self.check_quiet()

    def test_keyboard(self):
        """Every control is reached by the Tab key."""
        browser = self.browser
        browser.open(self.page_of(self.synthetic("keyboard", 16, 1, 100)))
        wanted = browser.run("""return [...document.querySelectorAll(
                'a[href], button, select, summary, canvas[tabindex], input')]
            .filter((one) => one.checkVisibility() && !one.disabled && (one.type !== 'radio' || one.checked)).length""")
        reached = browser.run("""window.reached = new Set();
            document.addEventListener('focusin', (event) => reached.add(event.target)); return 0""")
        for _ in range(wanted + 2):
            browser.command("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
            reached = browser.run("return reached.size")
        self.assertGreaterEqual(reached, wanted)

    def test_many_ranks(self):
        page = self.page_of(self.synthetic("many", 1000, 200, 500))
        self.assertLess(page.stat().st_size, 5_500_000)
        begin = time.monotonic()
        self.browser.open(page)
        self.assertIn("rank 3", self.browser.text("#sites"))
        seconds = time.monotonic() - begin
        print(f"1000 ranks: {page.stat().st_size >> 10} KiB, {seconds:.1f} s until it is there")
        self.assertLess(seconds, 10)  # about 1 on an idle machine
        self.check_curve()
        # Lines between nodes stay apart, however many nodes there are.
        rows = self.browser.run("""const canvas = document.querySelector('#heat');
            const column = canvas.getContext('2d').getImageData(60, 52, 1, canvas.height - 52 - 26).data;
            return Array.from({length: column.length / 4}, (_, y) => y)
                .filter((y) => column[4 * y] + column[4 * y + 1] + column[4 * y + 2] === 3 * 255)""")
        gaps = [after - before for before, after in zip(rows, rows[1:])]
        self.assertTrue(len(rows) > 20 and min(gaps) >= 11, rows)
        # One that is far down in every table is found once it is chosen.
        self.browser.open(self.page_of(self.folder / "many"), "#rank=777")
        chosen = "return document.querySelector(arguments[0] + ' .chosen .pick').innerText"
        for table in ("#ranks", "#times"):
            self.assertEqual(self.browser.run(chosen, table), "777")
        self.check_quiet()
        self.browser.screenshot("many-light")

    def check_curve(self):
        """Of many ranks: the farther down, the later the arrivals."""
        self.browser.click("input[name=callscale][value=log]")
        first_marks = self.browser.run("""const canvas = document.querySelector('#call-chart');
            const paint = canvas.getContext('2d');
            return [0.1, 0.5, 0.9].map((part) => {
              const line = paint.getImageData(57, 8 + Math.round(part * 420), canvas.width - 57, 1).data;
              for (let i = 0; i < line.length; i += 4)
                if (line[i + 3] > 200 && line[i] + line[i + 1] + line[i + 2] < 200) return i / 4;
              return -1; })""")
        self.assertTrue(0 <= first_marks[0] < first_marks[1] < first_marks[2], first_marks)
        self.assertRegex(self.browser.text("#call-spread"), "Half of the 1,000 ranks had come after .* the last one")

    def test_partial(self):
        """What is missing is said, and the rest is shown."""
        folder = self.synthetic("partial", 8, 2, 200)
        (folder / "rank-00005.pap").unlink()
        whole = (folder / "rank-00002.pap").read_bytes()
        (folder / "rank-00002.pap").write_bytes(whole[:1000])
        self.browser.open(self.page_of(folder, 3))
        self.assertIn("The record is not complete", self.browser.text())
        self.assertIn("No usable record of ranks 2, 5", self.browser.text("#notes"))
        self.assertIn("6 read", self.browser.text("#tiles"))
        self.assertIn("last", self.browser.text("#call-readout"))
        self.check_quiet()
        # Nobody else there to compare with.
        for rank in (1, 3, 4, 6, 7):
            (folder / f"rank-0000{rank}.pap").unlink()
        self.browser.open(self.page_of(folder, 3))
        self.assertIn("Arrivals cannot be compared", self.browser.text("h1"))
        self.assertFalse(self.browser.run("return document.querySelector('#call').checkVisibility()"))
        self.check_quiet()

    def test_nothing(self):
        """A run without calls has a page, a folder without records has none."""
        self.browser.open(self.page_of(self.synthetic("nothing", 4, 1, 0)))
        self.assertIn("no collective calls", self.browser.text("h1"))
        self.check_quiet()
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertTrue(self.page_of(empty, 1))
        self.assertFalse((empty / "report.html").exists())


def browser_text(browser, selector):
    """As it is in the document, wherever its lines end."""
    return browser.run("return document.querySelector(arguments[0]).textContent", selector)


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], required=True)
    parser.add_argument("--screenshots", type=pathlib.Path, help="write pictures of the pages into this folder")
    parser.add_argument("tests", nargs="*", help="names of tests (default: all)")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("no chromium or no chromedriver here: the page is not tested")
        return 77
    probe = subprocess.run([options.build / "papaya", "report", "--html", "/nonexistent"], stderr=subprocess.PIPE,
                           text=True, check=False)
    if "libjs-chart.js" in probe.stderr:
        print("built without Chart.js: there is no page to test")
        return 77
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    program = unittest.main(argv=[sys.argv[0], *(f"Page.{name}" for name in options.tests)], exit=False, verbosity=2)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
