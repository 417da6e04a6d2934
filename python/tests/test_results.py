"""What results look like: as text, as HTML and as frames."""

import html.parser

import pytest

import batchwise as bw

EXPRESSION = "flatten dense(16,relu) dense(10,softmax)"


class Balanced(html.parser.HTMLParser):
    """Fails on tags that do not close; counts rows."""

    def __init__(self):
        super().__init__()
        self.open, self.rows = [], 0

    def handle_starttag(self, tag, attributes):
        self.rows += tag == "tr"
        if tag not in ("br", "line", "circle", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("br", "line", "circle", "polyline"):
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def results(digits):
    model = bw.Model(EXPRESSION)
    history = model.fit(*digits, epochs=2, batch_size=256, noise_every=2, verbose=0)
    plan = bw.plan(model, *digits, batch_size=[32, 1024])
    return {
        "history": (history, 2),
        "facts": (history.facts, 1),
        "noise": (history.noise, 1),
        "plan": (plan, 2),
        "batch plan": (plan[0], 5),
        "tuning": (bw.tune(model, *digits, seconds=0.5, largest=64), None),
        "findings": (bw.doctor(model, digits[0] * 4000, digits[1], seconds=0), None),
        "profile": (bw.profile(model, *digits, seconds=0.2), None),
        "prediction": (bw.profile(model, *digits, seconds=0.2).predict(cores=4), 1),
        "verification": (bw.verify(model, digits[0][:64], digits[1][:64]), 4),
        "machine": (bw.machine(), 1),
        "kinds of files": (bw.file_kinds(), None),
    }


NAMES = ["history", "facts", "noise", "plan", "batch plan", "tuning", "findings", "profile", "prediction", "verification", "machine"]


@pytest.mark.parametrize("name", [*NAMES, "kinds of files"])
def test_text_html_and_frame(results, name):
    pytest.importorskip("pandas")
    result, rows = results[name]
    text = repr(result)
    assert text and "object at 0x" not in text
    page = Balanced()
    page.feed(result._repr_html_())
    assert not page.open
    frame = result.to_frame()
    assert len(frame) == rows if rows is not None else len(frame) > 0


def test_bytes_are_readable_and_frames_have_numbers(results):
    pytest.importorskip("pandas")
    plan = results["plan"][0]
    assert "KiB" in repr(plan) and "KiB" in plan._repr_html_()
    assert plan.to_frame().peak_bytes.dtype.kind == "i"


def test_models_and_datasets(digits):
    model = bw.Model(EXPRESSION)
    assert "not built" in model._repr_html_()
    model.build((8, 8, 1))
    assert "dense_1" in model._repr_html_() and "1,210" in model._repr_html_()
    assert "<td" in bw.Dataset(*digits)._repr_html_()
