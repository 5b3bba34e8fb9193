# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: the list of `lockstep runs` and the page of `lockstep report`."""
import csv
import fcntl
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unittest

from runs import LOCKSTEP, RANK_COUNTS, RunTest, read_png

SHORT = ("train.steps=20", "schedule.cosine.warmup_steps=5", "train.eval_every=10", "checkpoint.every_steps=10")
CHROMIUM = shutil.which("chromium")

# What a person does with the page: smoothing, a logarithmic axis, the other theme, hiding and sorting runs, zoom and hover.
ACTS = """<script>
const slider = document.getElementById('smoothing');
slider.value = 0.9;
slider.dispatchEvent(new Event('input'));
document.getElementById('log').click();
document.querySelector('.theme').click();
document.querySelector('th:nth-child(5) button').click();
const inside = document.querySelector('[data-name="accuracy"] .plot');
const box = inside.getBoundingClientRect();
inside.querySelector('canvas:last-of-type').dispatchEvent(
  new MouseEvent('mousemove', {bubbles: true, clientX: box.left + 200, clientY: box.top + 100}));
document.querySelectorAll('#runs input')[1].click();
graphs[0].updateOptions({dateWindow: [5, 15]});
shareZoom(graphs[0]);
document.title = ['acted', document.documentElement.dataset.theme, graphs[3].xAxisRange(), graphs[3].visibility()].join(' ');
</script>"""


class Report(RunTest):
    def lockstep(self, *arguments, code=0):
        ended = subprocess.run([LOCKSTEP, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", check=False)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stdout if code == 0 else ended.stderr

    def in_window(self, columns, *arguments):
        master, slave = pty.openpty()
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([LOCKSTEP, *map(str, arguments)], stdout=slave, stdin=subprocess.DEVNULL)
        os.close(slave)
        text = b""
        try:
            while piece := os.read(master, 4096):
                text += piece
        except OSError:  # the other end is closed
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0)
        return text.decode().replace("\r\n", "\n").splitlines()

    def two_runs(self):
        self.train("slow", *SHORT, "optimizer.sgd.lr=0.001")
        self.train("fast", *SHORT, "optimizer.sgd.lr=0.1", "train.label_smoothing=0.1")

    def test_runs_are_listed_with_their_best_value_and_what_differs(self):
        self.two_runs()
        listed = json.loads(self.lockstep("runs", self.folder, "--json", "--sort", "best"))
        self.assertEqual([run["run"] for run in listed], ["fast", "slow"])
        fast = listed[0]
        self.assertEqual((fast["status"], fast["step"], fast["steps"], fast["exit_code"]), ("done", 20, 20, 0))
        lines = map(json.loads, (self.folder / "fast/metrics.jsonl").read_text(encoding="utf-8").splitlines())
        evaluations = [line["accuracy"] for line in lines if line.get("event") == "eval"]
        self.assertEqual(fast["best"]["value"], max(evaluations))
        self.assertEqual(fast["settings"], {"optimizer.sgd.lr": "0.1", "train.label_smoothing": "0.1"})
        rows = list(csv.DictReader(io.StringIO(self.lockstep("runs", self.folder, "--csv", "--sort", "lr"))))
        self.assertEqual([(row["run"], row["optimizer.sgd.lr"]) for row in rows], [("slow", "0.001"), ("fast", "0.1")])
        self.assertIn('did you mean "status"?', self.lockstep("runs", self.folder, "--sort", "statu", code=2))

    def test_the_list_fits_any_window(self):
        self.two_runs()
        for columns in (20, 50, 80, 160):
            lines = self.in_window(columns, "runs", self.folder)
            self.assertEqual(len(lines), 3)
            for line in lines:
                self.assertLessEqual(len(line), columns)
            self.assertRegex(lines[1], "^fast ")
            if columns >= 50:
                self.assertRegex(lines[1], r"done +20/20 +accuracy 0\.\d+")
            if columns == 160:
                self.assertRegex(lines[1], r"lr=0\.1 label_smoothing=0\.1$")

    def test_a_damaged_run_is_listed_with_what_is_wrong(self):
        self.train("run", *SHORT)
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "metrics.jsonl").write_bytes(b'\xff\x00{"step": 1')
        text = self.lockstep("runs", self.folder)
        self.assertRegex(text, r"(?m)^broken +lost")
        self.assertIn("broken: there is no job.pbtxt", text)
        self.assertRegex(text, r"(?m)^run +done")
        self.assertIn("no runs in", self.lockstep("runs", self.empty()))
        self.lockstep("runs", self.folder / "nothing", code=4)

    def empty(self):
        folder = self.folder / "empty"
        folder.mkdir(exist_ok=True)
        return folder

    def page(self, *runs):
        """Writes the page, or skips where the build cannot."""
        out = self.folder / "report.html"
        ended = subprocess.run([LOCKSTEP, "report", *map(str, runs), "--out", str(out)], capture_output=True, text=True, check=False)
        if ended.returncode == 3:
            self.assertIn("libjs-dygraphs", ended.stderr)
            self.skipTest("this build has no dygraphs")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return out

    def evaluate(self, run):
        self.lockstep("eval", self.folder / run, "--confusion", self.folder / run / "confusion.json")

    def test_the_page_holds_all_and_asks_no_network(self):
        self.two_runs()
        self.evaluate("fast")
        hostile = self.folder / "fast/job.pbtxt"
        hostile.write_text(hostile.read_text() + "# </script><script>alert(1)</script> <!-- <script>\n")
        text = self.page(self.folder / "fast", self.folder / "slow").read_text(encoding="utf-8")
        self.assertLess(len(text), 1_000_000)
        self.assertEqual(text.count("</script>"), 3)
        self.assertNotIn("sourceMappingURL", text)
        for attribute in re.findall(r"<[^<>]*\s(?:src|href)\s*=[^<>]*>", text[:text.index("<script")]):
            self.fail(f"the page loads {attribute}")
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
        self.assertEqual(data, data | json.loads(self.lockstep("report", self.folder / "fast", self.folder / "slow", "--json"))
                         | {"made": data["made"]})
        fast = data["runs"][0]
        self.assertEqual(len(fast["curves"]["loss"]), 20)
        self.assertEqual(len(fast["confusion"]["matrix"]), 10)
        self.assertEqual(fast["job"], hostile.read_text())

    def test_the_worst_samples_are_pictures_alike_on_any_number_of_ranks(self):
        self.train("run", *SHORT)
        found = {}
        for ranks in RANK_COUNTS:
            folder = self.folder / "run/pictures"
            self.lockstep("eval", self.folder / "run", "--pictures", folder, "--picture-count", 5, "--nproc", ranks)
            found[ranks] = sorted(path.name for path in folder.iterdir())
            self.assertEqual(len(found[ranks]), 5)
            losses = [float(re.match(r"\d\d_loss_([\d.]+)_\d(_taken_for_\d)?_sample_\d{6}\.png$", name)[1]) for name in found[ranks]]
            self.assertEqual(losses, sorted(losses, reverse=True))
            width, rows = read_png(folder / found[ranks][0])
            self.assertEqual((width, len(rows)), (8, 8))
            self.assertGreater(max(map(max, rows)), 200)
        samples = [[name[-17:] for name in names] for names in found.values()]
        self.assertEqual(samples, samples[:1] * len(samples))
        data = json.loads(self.lockstep("report", self.folder / "run", "--json"))
        self.assertEqual([picture["name"] for picture in data["runs"][0]["pictures"]], found[RANK_COUNTS[-1]])

    def browse(self, page, *options):
        """What Chromium says on stderr, and its stdout."""
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   f"--user-data-dir={self.folder}/browser", "--enable-logging=stderr", "--virtual-time-budget=5000",
                   "--run-all-compositor-stages-before-draw", *options, page.as_uri()]
        ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(console, [])
        return ended.stdout

    @unittest.skipUnless(CHROMIUM, "there is no chromium")
    def test_a_browser_draws_the_page_without_an_error(self):
        self.two_runs()
        self.evaluate("fast")
        page = self.page(self.folder)
        content = self.browse(page, "--dump-dom")
        self.assertGreaterEqual(content.count('class="chart"'), 6)
        self.assertGreaterEqual(content.count("<canvas"), 12)
        self.assertIn('data-name="accuracy"', content)
        self.assertEqual(len(re.findall(r"<td[^>]*>done</td>", content)), 2)
        acted = self.folder / "acted.html"
        acted.write_text(page.read_text(encoding="utf-8") + ACTS, encoding="utf-8")
        content = self.browse(acted, "--dump-dom")
        self.assertIn("<title>acted dark 5,15 true,false,true,false</title>", content)
        self.assertRegex(content, r'<div class="legend"><div>step (10|20)<span class="swatch"[^>]*></span>fast <b>0\.\d+</b>')
        picture = self.folder / "page.png"
        for width in (1000, 600):
            self.browse(page, f"--screenshot={picture}", f"--window-size={width},560")
            found, rows = read_png(picture)
            self.assertEqual(found, width)
            channels = len(rows[0]) // width
            colors = {bytes(row[at:at + 3]) for row in rows for at in range(0, len(row), channels)}
            self.assertLessEqual({b"\x00\x72\xb2", b"\xd5\x5e\x00"}, colors, "no curve of a run")


if __name__ == "__main__":
    unittest.main()
