"""Talks to the server of train --watch as browsers and others would: python3 watch.py PORT PID."""
import http.client
import json
import pathlib
import random
import re
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import browser  # noqa: E402

port, process = int(sys.argv[1]), int(sys.argv[2])
failures = 0


def expect(truth, what):
    global failures
    if not truth:
        failures += 1
        print("FAILED:", what)


def ask(path="/", method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or "127.0.0.1:%d" % port)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def events():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    expect(answer.status == 200 and answer.getheader("Content-Type") == "text/event-stream", "events: %s" % answer.status)
    return connection, answer


def event(answer):
    line = answer.readline()
    expect(line.startswith(b"data: {") and answer.readline() == b"\n", "an event: %r" % line[:80])
    return json.loads(line[6:])


def listening():
    """The addresses of this process's listening sockets, from the kernel's tables."""
    inodes = set()
    for link in pathlib.Path("/proc/%d/fd" % process).iterdir():
        try:
            name = str(link.readlink())
        except OSError:
            continue
        if name.startswith("socket:["):
            inodes.add(name[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in open("/proc/%d/net/%s" % (process, table)).readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(fields[1])
    return found


def steps(state):
    return state["runs"][0]["run"]["result"]["steps"] if state["runs"] else 0


# Only this address.
expect(listening() == ["0100007F:%04X" % port], "one socket, of 127.0.0.1: %s" % listening())

# The page, and what is no page.
answer, body = ask()
expect(answer.status == 200 and body.startswith(b"<!doctype html>") and b"EventSource" in body, "the page: %d" % answer.status)
expect(answer.getheader("Content-Type") == "text/html; charset=utf-8" and answer.getheader("Cache-Control") == "no-store" and
       answer.getheader("X-Content-Type-Options") == "nosniff", "the page's headers: %s" % answer.getheaders())
expect(answer.getheader("Access-Control-Allow-Origin") is None, "no other page may read it")
expect(len(body) < 1000000, "the page is below 1 MB")
expect(ask(host="localhost:%d" % port)[0].status == 200, "localhost")
for host in ("evil.example", "evil.example:%d" % port, "127.0.0.1", "127.0.0.1:1", "127.0.0.1:%d.evil.example" % port, ""):
    expect(ask(host=host)[0].status in ((403,) if host else (400, 403)), "Host '%s'" % host)
expect(ask("/events", host="evil.example")[0].status == 403, "events for another host")
for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
    expect(ask(method=method)[0].status == 405, method)
for path in ("/../../etc/passwd", "/%2e%2e/etc/passwd", "//", "/run.json", "/events/", "/?x", "*"):
    expect(ask(path)[0].status == (200 if path == "/?x" else 404), "path " + path)
# Not HTTP at all, and headers without an end: whatever the answer, the server lives.
for rubbish in (b"\0\xff\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 100000 + b"\r\n\r\n", b"GET " + b"/" * 100000):
    with socket.create_connection(("127.0.0.1", port), 1) as plain:
        try:
            plain.sendall(rubbish)
            plain.shutdown(socket.SHUT_WR)
            plain.recv(1000)
        except OSError:
            pass
# Requests that were right, with bytes changed, left out, doubled or cut off (tests/fuzz/live_page.py has more of them): whoever is answered with
# the page or its events has named this machine as the host, and whoever ends the connection is answered or let go at once.
random.seed(11)
whole = b"GET /events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nRange: bytes=0-1\r\n\r\nabc" % port
for attempt in range(80):
    request = bytearray(whole if attempt % 40 == 0 else whole.replace(b"/events", b"/"))
    for _ in range(random.randint(1, 6)):
        at = random.randrange(len(request))
        change = random.choice(("byte", "cut", "double", "drop", "end"))
        if change == "byte":
            request[at] = random.choice(b"\0\r\n :/%\xff09Aa")
        elif change == "double":
            request[at:at] = request[at:at + random.randint(1, 40)] * random.choice((1, 2, 50))
        elif change == "drop":
            del request[at:at + random.randint(1, 30)]
        elif change == "end":
            request[at:] = b"\r\n\r\n"
        elif len(request) > 20 and random.random() < 0.2:
            del request[at:]
        if not request:
            break
    with socket.create_connection(("127.0.0.1", port), 60) as plain:
        said = b""
        try:
            plain.sendall(bytes(request))
            plain.shutdown(socket.SHUT_WR)
            said = plain.recv(200)
        except TimeoutError:
            expect(False, "neither answered nor let go: %r" % bytes(request)[:200])
        except OSError:
            pass
    named = re.search(rb"host:[ \t]*(127\.0\.0\.1|localhost):%d[ \t]*\r?\n" % port, bytes(request).lower())
    expect(not said.startswith(b"HTTP/1.1 200") or named, "a request without this host is answered: %r" % bytes(request)[:200])
# Connections without a request take nobody's place.
silent = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(40)]
expect(ask()[0].status == 200, "a reader beside 40 connections that say nothing")
for plain in silent:
    plain.close()
expect(ask()[0].status == 200, "the server lives")

# Events: whole states, each newer than the one before.
connection, stream = events()
seen = [steps(event(stream)) for _ in range(4)]
expect(seen[-1] > seen[-2] > seen[-3], "events follow the training: %s" % seen)
state = event(stream)["runs"][0]
expect(state["run"]["plan"]["planned_bytes"] > 0 and state["ledger"]["parts"]["forward"] > 0 and len(state["steps"]["loss"]) > 2 and
       state["run"]["training"]["optimizer"] == "adam", "an event has the files of a run")
connection.close()

# Readers that never read, and ones that leave, do not stop the training; too many are sent away.
idle = []
for _ in range(12):
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(60)
    plain.connect(("127.0.0.1", port))
    plain.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
    idle.append(plain)
time.sleep(3)
refused = 0
for plain in idle:
    plain.setblocking(False)
    try:
        refused += b" 503 " in plain.recv(64, socket.MSG_PEEK)
    except OSError:
        pass
expect(refused in (4, 5), "eight listeners, and the others too many: %d" % refused)  # the reader that left may still hold a place
for plain in idle[4:]:
    plain.close()
end = time.monotonic() + 60
while True:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/events")
    stream = connection.getresponse()
    if stream.status == 200:
        break
    connection.close()
    if time.monotonic() > end:
        expect(False, "places of readers that left are free again")
        sys.exit(1)
    time.sleep(0.5)
first = event(stream)
expect(steps(event(stream)) > steps(first), "the training goes on beside readers that never read")
connection.close()

# In a browser: the page follows, and ends with the training's end.
if browser.find():
    b = browser.Browser()
    try:
        b.view()
        b.open("http://127.0.0.1:%d/" % port)
        text = "document.querySelector('main').innerText"
        b.wait("!!document.querySelector('path.curve')")
        shown = b.evaluate("document.querySelector('dl.facts').innerText")
        b.wait("document.querySelector('dl.facts').innerText !== %s" % json.dumps(shown))
        expect("Live" in b.evaluate(text) and "worker 0" in b.evaluate(text), "a live page")
        expect(not b.errors, "errors on the console: %s" % b.errors)
        open("ready", "w").close()
        b.wait("%s.includes('The training is over.')" % text, 120)
        expect("interrupted" in b.evaluate(text) and "holds the whole batch" in b.evaluate(text), "the last page is the report")
        expect(not b.errors, "errors on the console: %s" % b.errors)
    finally:
        b.close()
else:
    connection, stream = events()
    open("ready", "w").close()
    while not event(stream)["over"]:
        pass
    expect(stream.read() == b"", "nothing follows the last event")
sys.exit(failures > 0)
