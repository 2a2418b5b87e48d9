// SPDX-License-Identifier: MIT
// 01-client: sends a message, waits for its echo, and again.
//
//   ./course run 01:client -- --port 9000 --requests 10000 --size 1024
int main() {
  return 0;
}
