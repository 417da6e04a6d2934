#!/usr/bin/env python3
"""Sends damaged requests to the server of train --watch: live_page.py COMMAND DATA [--requests N | --seconds N] [--seed N].

Requests that were right are changed, cut off, joined, left without an end, dripped or abandoned. Whatever the server says, only who names
this machine as the host gets the page; whoever ends a connection is answered or let go; a plain reader is always answered; memory and open
files stay bounded; and the training goes on.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import time

PATIENCE = 60  # seconds; a slow machine is no failure
MEMORY = 24 << 20  # that 24 connections may add: 16 KiB each, and a page that is being sent

parser = argparse.ArgumentParser()
parser.add_argument("command")
parser.add_argument("data")
parser.add_argument("--requests", type=int)
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
options = parser.parse_args()
dice = random.Random(options.seed)


def fail(text):
    sys.exit("live_page.py: %s (--seed %d)" % (text, options.seed))


def start():
    arguments = ["train", "--model", "conv2d(8,3,relu) flatten dense(10,softmax)", "--data", options.data, "--scale", "1/16",
                 "--batch", "8", "--epochs", "1000000", "--watch", "0", "--quiet"]
    training = subprocess.Popen([options.command] + arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    line = training.stderr.readline().decode()
    found = re.search(r"http://127\.0\.0\.1:([0-9]+)/", line)
    if not found:
        fail("no server: " + line)
    os.set_blocking(training.stderr.fileno(), False)
    return training, int(found.group(1))


def ask(path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path)
    return connection, connection.getresponse()


def plain_reader():
    try:
        connection, answer = ask()
        body = answer.read()
        connection.close()
    except OSError as error:
        fail("a plain reader gets no answer: %s" % error)
    if answer.status != 200 or not body.endswith(b"</html>\n"):
        fail("a plain reader gets %d and %r" % (answer.status, body[-20:]))


def steps():
    connection, answer = ask("/events")
    if answer.status != 200:
        connection.close()
        return None
    for _ in range(3):
        state = json.loads(answer.readline()[6:])
        answer.readline()
    connection.close()
    return state["runs"][0]["run"]["result"]["steps"]


def status(name):
    text = pathlib.Path("/proc/%d/status" % training.pid).read_text()
    return int(re.search(name + r":\s+([0-9]+) kB", text).group(1)) << 10


def open_files():
    return len(list(pathlib.Path("/proc/%d/fd" % training.pid).iterdir()))


def seeds():
    host = b"Host: 127.0.0.1:%d\r\n" % port
    return [b"GET / HTTP/1.1\r\n" + host + b"\r\n",
            b"GET /events HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"Connection: close\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
            b"Range: bytes=0-1\r\n\r\nabc",
            b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
            b"POST /events HTTP/1.1\r\n" + host + b"Expect: 100-continue\r\nContent-Length: 18446744073709551615\r\n\r\n",
            b"GET /%2e%2e/%00?a=%zz&b HTTP/1.0\r\n" + host + b"Cookie: a=b; c=\"d\r\nAuthorization: Basic !!\r\n\r\n",
            b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n" % port + host + b"Accept-Encoding: gzip\r\nUpgrade: websocket\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: evil.example:%d\r\nX-Forwarded-Host: 127.0.0.1:%d\r\n\r\n" % (port, port)]


def damage(request, others):
    request = bytearray(request)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(request)) if request else 0
        change = dice.choice(("byte", "byte", "double", "drop", "end", "cut", "insert", "join", "fold"))
        if change == "byte" and request:
            request[at] = dice.choice(b"\0\r\n :/%\xff09Aa\x7f?#;=")
        elif change == "double":
            request[at:at] = request[at:at + dice.randint(1, 40)] * dice.choice((1, 2, 50, 1000))
        elif change == "drop":
            del request[at:at + dice.randint(1, 30)]
        elif change == "end":
            request[at:] = b"\r\n\r\n"
        elif change == "cut" and dice.random() < 0.3:
            del request[at:]
        elif change == "insert":
            request[at:at] = dice.choice((b"\r\n", b"\n\n", b"\0", b"Host: evil.example\r\n", b"Content-Length: -1\r\n", b"\r\n\t", b"%",
                                          b"HTTP/9.9", b"A" * 40000))
        elif change == "join":
            request += dice.choice(others)
        elif change == "fold":
            request[at:at] = b"\r\n "
    return bytes(request[:200000])


def received(plain):
    """What the server says before it is done, at most some bytes: a stream of events has no end."""
    plain.settimeout(PATIENCE)
    said = b""
    try:
        while len(said) < 1000:
            more = plain.recv(1000)
            if not more:
                break
            said += more
    except TimeoutError:
        return None
    except OSError:
        pass
    return said


def send(request):
    """Sends it in one of several ways; returns the connection if it stays open."""
    plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
    manner = dice.choice(("ends", "ends", "ends", "leaves", "breaks", "drips", "stays"))
    try:
        if manner == "drips":
            for k in range(0, min(len(request), 60), 7):
                plain.sendall(request[k:k + 7])
        elif manner == "stays":
            plain.setblocking(False)
            plain.send(request)
            return plain
        else:
            plain.sendall(request)
        if manner == "ends":
            plain.shutdown(socket.SHUT_WR)
            said = received(plain)
            if said is None:
                fail("neither answered nor let go: %r" % request[:300])
            named = re.search(rb"host\s*:\s*(127\.0\.0\.1|localhost):%d(?![0-9A-Za-z.])" % port, request.lower())
            if said.startswith(b"HTTP/1.1 200") and not named:
                fail("a request without this host is answered: %r" % request[:300])
        elif manner == "breaks":
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except TimeoutError:
        fail("neither read nor let go: %r" % request[:300])
    except OSError:  # the server has ended the connection
        pass
    plain.close()
    return None


training, port = start()
try:
    whole = seeds()
    for request in whole:
        send(request)
    plain_reader()
    began, files, memory = steps(), open_files(), status("VmRSS")
    held, count, end = [], 0, time.monotonic() + options.seconds
    while count < options.requests if options.requests else time.monotonic() < end:
        held.append(send(damage(dice.choice(whole), whole)))
        held = [plain for plain in held if plain]
        if len(held) > 40:
            held.pop(dice.randrange(len(held))).close()
        count += 1
        if count % 50 == 0:
            plain_reader()
        if training.poll() is not None:
            fail("the training ended with %d: %s" % (training.returncode, (training.stderr.read() or b"").decode()))
    grown = status("VmHWM") - memory
    if grown > MEMORY:
        fail("%d requests took %d bytes" % (count, grown))
    for plain in held:
        plain.close()
    plain_reader()
    end = time.monotonic() + PATIENCE
    while open_files() > files and time.monotonic() < end:
        time.sleep(0.1)
    if open_files() > files:
        fail("%d files are open, before it were %d" % (open_files(), files))
    while (ended := steps()) is None and time.monotonic() < end:
        time.sleep(0.1)
    if ended is None or ended <= began:
        fail("the training does not go on: %s steps, before %s" % (ended, began))
    print("http         %d runs, %d KiB more memory at the most" % (count, grown >> 10))
finally:
    training.kill()
