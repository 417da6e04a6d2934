"""Looks at reports in Chromium: what is drawn, what hovering and the keyboard tell, themes, a phone, and files that hold anything."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Browser  # noqa: E402

failures = 0


def expect(truth, what):
    global failures
    if not truth:
        failures += 1
        print("FAILED:", what)


def url(path):
    return pathlib.Path(path).resolve().as_uri()


def no_errors(b, what):
    expect(not b.errors, what + ": " + "; ".join(b.errors))
    b.errors.clear()


def shot(b, name):
    if os.environ.get("BW_SCREENSHOTS"):
        b.screenshot(os.path.join(os.environ["BW_SCREENSHOTS"], name + ".png"))


TEXT = "document.querySelector('main').innerText"
FIRST = "document.querySelector('figure.chart svg')"


def look(b):
    """One run: sections, curves, hover, keyboard, tables."""
    history = json.load(open("one/history.json"))
    b.view()
    b.open(url("one/report.html"))
    no_errors(b, "one run")
    text = b.evaluate(TEXT)
    for part in ("Training on digits.npz", "Learning", "Predictions", "Worst samples", "Time", "Timeline", "Memory", "Model", "To repeat this run",
                 "sparse_categorical_crossentropy", "adam", "holds the whole batch", "gradient noise scale", "batchwise train --model", "recall"):
        expect(part in text, "the page has '%s'" % part)
    expect(b.evaluate("document.title") == "Training on digits.npz – Batchwise", "the title")
    expect(b.evaluate("[...document.querySelectorAll('figcaption')].map(f => f.firstChild.textContent).join()") ==
           "loss,accuracy,Samples per second,Learning rate,One step: " + b.evaluate("document.querySelectorAll('figcaption')[4].innerText.slice(10)"), "the charts")
    expect(b.evaluate("document.querySelectorAll('path.curve').length") >= 6, "curves")
    expect(b.evaluate("[...document.querySelectorAll('path.curve')].every(p => /^M[\\d. LM-]+$/.test(p.getAttribute('d')))"), "curves are numbers")
    expect(b.evaluate("document.querySelectorAll('.stack span').length") > 6, "stacked bars")
    expect(b.evaluate("document.querySelectorAll('.plot rect').length") > 6, "parts of the timeline")
    expect(b.evaluate("[...document.querySelectorAll('svg, canvas')].every(e => e.getAttribute('role') === 'img' && e.getAttribute('aria-label'))"),
           "every picture has a label")
    expect(b.evaluate("[...document.querySelectorAll('canvas')].filter(c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size > 3).length") == 24,
           "the worst samples are drawn")

    # The pointer at the right end of the loss: the last epoch, with the values of the history.
    box = b.evaluate("(() => { const r = %s.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })()" % FIRST)
    b.move(box[2] - 12, (box[1] + box[3]) / 2)
    tip = b.evaluate("%s.parentNode.querySelector('.tip').innerText" % FIRST)
    expect("epoch %d" % len(history["loss"]) in tip, "hover names the epoch: " + tip)
    for name in ("loss", "val_loss"):
        expect("%.4g" % history[name][-1] in tip, "hover has %s %.4g: %s" % (name, history[name][-1], tip))
    expect(b.evaluate("%s.querySelectorAll('.cross').length" % FIRST) == 1, "the crosshair")
    shot(b, "hover")
    b.move(2, 2)
    expect(b.evaluate("%s.parentNode.querySelector('.tip').hidden" % FIRST), "leaving the chart hides the values")

    # The keyboard reads the same, aloud.
    b.evaluate(FIRST + ".focus()")
    b.press("ArrowRight")
    said = b.evaluate("document.querySelector('[aria-live]').textContent")
    expect(said.startswith("epoch 1: training%.4g" % history["loss"][0]), "the first point: " + said)
    b.press("End")
    said = b.evaluate("document.querySelector('[aria-live]').textContent")
    expect(said.startswith("epoch %d: " % len(history["loss"])), "the last point: " + said)
    b.press("Escape")
    expect(b.evaluate("%s.parentNode.querySelector('.tip').hidden" % FIRST), "Escape hides the values")

    # By step, and as a table.
    b.evaluate("document.querySelector('input[value=step]').click()")
    axis = b.evaluate("[...%s.querySelectorAll('text')].map(t => t.textContent)" % FIRST)
    expect("step" in axis and "200" in axis, "the axis by step: %s" % axis)
    b.evaluate("document.querySelector('input[type=checkbox]').click()")
    b.evaluate("document.querySelector('details[data-key=epochs]').open = true")
    b.wait("!!document.querySelector('details[data-key=epochs] tbody')")
    cells = b.evaluate("[...document.querySelector('details[data-key=epochs] tbody').lastChild.children].map(c => c.innerText)")
    expect(cells[0] == str(len(history["loss"])) and cells[1] == "%.4g" % history["accuracy"][-1], "the table: %s" % cells)
    no_errors(b, "using the page")


def look_everywhere(b):
    """Themes and sizes: the page never scrolls sideways."""
    backs = []
    for theme in ("light", "dark"):
        for width in (1100, 390):
            b.view(width, 900, theme)
            b.open(url("one/report.html"))
            expect(b.evaluate("document.documentElement.scrollWidth") <= width, "no sideways scrolling at %d" % width)
            expect(b.evaluate("[...document.querySelectorAll('figure.chart svg')].every(s => s.getBoundingClientRect().right <= innerWidth)"),
                   "charts fit into %d" % width)
            backs.append(b.evaluate("getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color"))
            shot(b, "%s-%d" % (theme, width))
            no_errors(b, "%s at %d" % (theme, width))
    expect(backs[0] == backs[1] != backs[2] == backs[3], "light and dark differ")


def look_at_tuning(b):
    """The batch size that was chosen: time to the target with its interval, throughput, the knee and the choice."""
    captions = "[...document.querySelectorAll('figcaption')].map(f => f.firstChild.textContent)"
    b.view()
    b.open(url("tuned/report.html"))
    no_errors(b, "a tuned run")
    expect("Batch size" in b.evaluate(TEXT) and "Measured throughput" in b.evaluate(captions), "a tuned run has its curve")
    b.open(url("only_tuned.html"))
    no_errors(b, "a tuning without a training")
    expect("A batch size for digits.npz" in b.evaluate(TEXT) and "training time" not in b.evaluate(TEXT), "a tuning has no results of a training")
    for caption in ("Measured throughput", "Loss of the candidates, trained from the same state"):
        expect(caption in b.evaluate(captions), "a tuning has '%s'" % caption)
    shot(b, "only-tuned")
    b.open(url("curve/report.html"))
    no_errors(b, "a known curve")
    text = b.evaluate(TEXT)
    for part in ("Chosen: batch 64 with learning rate 0.01. Because.", "40.5 samples (30 to 50, 95 %)", "a loss of 0.25, which batch 32 reached after 4,096 samples"):
        expect(part in text, "the tuning has '%s'" % part)
    figure = "document.querySelectorAll('figure.chart')[%s.indexOf('Predicted time to the target')]" % captions
    letters = b.evaluate("[...%s.querySelectorAll('svg text')].map(t => t.textContent)" % figure)
    for label in ("16", "32", "64", "128", "batch", "knee 64", "recommended 64"):
        expect(label in letters, "the curve's '%s': %s" % (label, letters))
    # Batch sizes that double are equally far apart; the interval without an upper end reaches the upper edge.
    xs = b.evaluate("[...%s.querySelectorAll('circle')].map(c => Number(c.getAttribute('cx')))" % figure)
    expect(len(xs) == 4 and max(abs(xs[k + 1] - xs[k] - (xs[1] - xs[0])) for k in range(3)) < 0.5, "batch sizes: %s" % xs)
    corners = b.evaluate("%s.querySelector('path.band').getAttribute('d')" % figure)[1:-1].split("L")
    ys = [float(c.split()[1]) for c in corners]
    heights = b.evaluate("[...%s.querySelectorAll('circle')].map(c => Number(c.getAttribute('cy')))" % figure)
    expect(len(ys) == 8 and all(ys[k] >= heights[k] >= ys[7 - k] for k in range(4)), "the interval holds the curve: %s %s" % (ys, heights))
    expect(ys[5] == 8 and min(ys[4], ys[6], ys[7]) > 8, "the open end is the upper edge: %s" % ys)
    expect(b.evaluate("%s.querySelectorAll('line.mark').length" % figure) == 2, "the marks")
    box = b.evaluate("(() => { const e = %s.querySelector('svg'); e.scrollIntoView({ block: 'center' }); const r = e.getBoundingClientRect(); "
                     "return [r.left, r.top, r.right, r.bottom]; })()" % figure)
    b.move(box[2] - 12, (box[1] + box[3]) / 2)
    tip = b.evaluate("%s.querySelector('.tip').innerText" % figure)
    expect("batch 128" in tip and "900 ms" in tip and "700 ms to 2.5 s" in tip, "hover: " + tip)
    shot(b, "tuning")
    no_errors(b, "hovering over the curve")


def look_at_several(b):
    b.view()
    b.open(url("several.html"))
    no_errors(b, "several runs")
    text = b.evaluate(TEXT)
    for part in ("2 runs compared", "Results", "one", "two", "val_accuracy", "Commands"):
        expect(part in text, "the comparison has '%s'" % part)
    expect(b.evaluate(FIRST + ".querySelectorAll('path.curve:not(.faint)').length") == 3, "training of both, validation of one")
    shot(b, "several")


def look_at_anything(b):
    """Files with markup and with values of any type: nothing runs, and what can be drawn is drawn."""
    b.view()
    b.open(url("hostile/report.html"))
    no_errors(b, "markup in names")
    expect(b.evaluate("window.hacked === undefined && !document.querySelector('b.evil, img, iframe')"), "markup in names stays text")
    text = b.evaluate(TEXT)
    expect('<b class="evil">' in text and "</script><script>hacked=1</script>" in text, "markup in names is shown")
    # The script itself, over and over, with one value of one file replaced at a time.
    b.call("Page.setBypassCSP", enabled=True)
    b.open(url("one/report.html"))
    wrong = b.evaluate("""(() => {
        const place = document.getElementById('data'), base = place.textContent, wrong = [];
        const draw = new Function(document.querySelectorAll('script')[1].textContent);
        const values = [null, -1e308, 'x', [null], { of: 1e9, values: [1] }, { a: { b: [1, '2', {}] } }];
        const tuning = { knee_batch: 2, recommended_batch: 4, curve: [{ batch: 2, seconds: 1, samples_per_s: 1 }, { batch: 4, seconds: 2 }] };
        function attempt(change, what) {
            const data = JSON.parse(base);
            change(data.runs[0]);
            place.textContent = JSON.stringify(data);
            try {
                draw();
                if (document.querySelector('main').textContent.length < 50) {
                    wrong.push(what + ': nothing is drawn');
                }
            } catch (error) {
                wrong.push(what + ': ' + error.stack);
            }
        }
        for (const value of values) {
            for (const key of Object.keys(tuning)) {
                attempt(run => { run.run.tuning = { ...tuning, [key]: value }; }, 'tuning.' + key + ' = ' + JSON.stringify(value));
            }
            for (const key of Object.keys(tuning.curve[0])) {
                attempt(run => { run.run.tuning = { ...tuning, curve: [{ ...tuning.curve[0], [key]: value }, tuning.curve[1]] }; }, 'row ' + key + ' = ' + JSON.stringify(value));
            }
            for (const file of ['run', 'history', 'steps', 'ledger', 'evaluation', 'findings']) {
                const shown = file + ' = ' + JSON.stringify(value);
                attempt(run => { run[file] = value; }, shown);
                for (const key of Object.keys(JSON.parse(base).runs[0][file] || {})) {
                    attempt(run => { run[file][key] = value; }, shown + ' at ' + key);
                }
            }
        }
        return wrong;
    })()""")
    expect(wrong == [], "values of any type: %s" % wrong[:3])
    no_errors(b, "values of any type")


def main():
    b = Browser()
    try:
        look(b)
        look_everywhere(b)
        look_at_tuning(b)
        look_at_several(b)
        look_at_anything(b)
    finally:
        b.close()
    return failures > 0


sys.exit(main())
