"""A trace in Perfetto's own reader, trace_processor, which the package `perfetto` downloads when it is first used. Where it cannot, or the
package is missing, nothing is compared; tests/cli/profile.sh holds the same trace to the format's rules.

    check_trace.py BATCHWISE FOLDER
"""

import os
import subprocess
import sys

command, folder = sys.argv[1:3]
trace = os.path.join(folder, "trace.json.gz")
subprocess.run([command, "profile", "--model", "flatten dense(10,softmax)", "--data", "synth:images?n=256&shape=8x8x1&classes=10&delay=1ms", "--batch", "16",
                "--seconds", "0.3", "--workers", "2", "--trace", trace], check=True, stdout=subprocess.DEVNULL)
try:
    from perfetto.trace_processor import TraceProcessor

    processor = TraceProcessor(trace=trace)
except Exception as reason:  # the package raises whatever its download does
    print("trace_processor is not available: not compared (%s)" % str(reason).splitlines()[0][:120])
    sys.exit(0)


def ask(query):
    return [row.__dict__ for row in processor.query(query)]


rows = {r["name"]: r["n"] for r in ask("select thread.name as name, count(slice.id) as n from thread join thread_track using (utid) "
                                       "join slice on slice.track_id = thread_track.id group by thread.name")}
assert {"steps", "worker 0", "worker 1", "data thread 0"} <= set(rows) and rows["steps"] >= 5, rows
assert rows["data thread 0"] >= 5, rows
counters = {r["name"]: r["n"] for r in ask("select name, count(*) as n from counter join counter_track on counter.track_id = counter_track.id group by name")}
assert any("loss" in name for name in counters) and any("memory" in name for name in counters), counters
wrong = ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
assert not wrong, wrong
assert ask("select count(*) as n from slice where dur < 0")[0]["n"] == 0
print("trace_processor reads all of it")
