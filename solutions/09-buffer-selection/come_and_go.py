# SPDX-License-Identifier: MIT
"""Clients that come and go, and then fifty that talk: does each get its own bytes back?

python3 chapters/09-buffer-selection/come_and_go.py 9000
"""

import socket
import sys


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def message(number: int) -> bytes:
    return b"client %02d " % number * 100


def come_and_go(port: int) -> int:
    for _ in range(100):
        connect(port).close()
    talkers = [connect(port) for _ in range(50)]
    wrong = 0
    for _ in range(20):
        for number, talker in enumerate(talkers):
            talker.sendall(message(number))
        for number, talker in enumerate(talkers):
            reply = talker.recv(1000, socket.MSG_WAITALL)
            if reply != message(number):
                wrong += 1
                print(f"client {number:02} received: {reply[:9].decode()}")
    return wrong


def main() -> int:
    wrong = come_and_go(int(sys.argv[1]))
    print(f"{wrong} of 1000 messages came back wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
