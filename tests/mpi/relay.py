#!/usr/bin/env python3
"""relay.py MILLISECONDS INTERFACE INTERFACE: carries Ethernet frames between two interfaces, each of them that much later.
relay.py prepare INTERFACE: what a network card would do, checksums and the cutting of long frames, is done before frames leave here.

It stands for a long way between two machines, on kernels that cannot delay packets themselves (netem).
"""
import ctypes
import fcntl
import selectors
import socket
import struct
import sys
import time
from collections import deque

SIOCETHTOOL, ETH_P_ALL, PACKET_OUTGOING = 0x8946, 3, 4
TX_CHECKSUMS, TSO, GSO = 0x17, 0x1F, 0x24  # the numbers of ETHTOOL_STXCSUM, _STSO, _SGSO


def open_interface(name):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    link.bind((name, ETH_P_ALL))
    link.setblocking(False)
    return link


def leave_nothing_to_the_card(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (TX_CHECKSUMS, TSO, GSO):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP", name.encode(), ctypes.addressof(value)))


def receive(link, late, way):
    """Takes all frames that have come, but for those that were sent from here."""
    while True:
        try:
            frame, (_, _, kind, *_) = link.recvfrom(1 << 16)
        except BlockingIOError:
            return
        if kind != PACKET_OUTGOING:
            way.append((time.monotonic() + late, frame))


def main():
    late = float(sys.argv[1]) / 1000
    links = [open_interface(name) for name in sys.argv[2:4]]
    ways = [deque(), deque()]
    ready = selectors.DefaultSelector()
    for k, link in enumerate(links):
        ready.register(link, selectors.EVENT_READ, k)
    while True:
        due = min((way[0][0] for way in ways if way), default=None)
        for key, _ in ready.select(None if due is None else max(0, due - time.monotonic())):
            receive(links[key.data], late, ways[key.data])
        for k, way in enumerate(ways):
            while way and way[0][0] <= time.monotonic():
                try:
                    links[1 - k].send(way.popleft()[1])
                except OSError:
                    pass  # lost on the way, as happens; the sender repeats it


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        leave_nothing_to_the_card(sys.argv[2])
    else:
        main()
