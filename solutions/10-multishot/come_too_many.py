# SPDX-License-Identifier: MIT
"""More clients than a server has descriptors for come and go. Does it hear the next one?

python3 chapters/10-multishot/come_too_many.py 9000
"""

import socket
import sys

TOO_MANY = 40
PATIENCE_S = 3


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def main() -> int:
    port = int(sys.argv[1])
    crowd = [connect(port) for _ in range(TOO_MANY)]
    for each in crowd:
        each.close()
    print(f"{TOO_MANY} clients have come and gone")
    with connect(port) as late:
        late.sendall(b"hello?")
        try:
            print("one more says hello, and hears:", late.recv(100).decode())
        except TimeoutError:
            print(f"one more says hello, and hears nothing for {PATIENCE_S} seconds")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
