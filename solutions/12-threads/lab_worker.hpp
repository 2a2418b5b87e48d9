// SPDX-License-Identifier: MIT
// One thread of the laboratory: an echo server on a ring, without coroutines, in which every design
// choice is a switch. It is for measuring; 12-server is the one to keep.
// Owns     the ring, the buffers, the listener and the clients.
// Lifetime `stop_fd` must outlive it.
// Threads  made and run by one thread.
// Errors   std::system_error if the ring fails. How a client ends concerns that client only.
#pragma once

#include <fcntl.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <list>
#include <utility>

#include "buffer_pool.hpp"
#include "errors.hpp"
#include "lab_client.hpp"
#include "lab_echo.hpp"
#include "lab_ring.hpp"
#include "lab_switches.hpp"
#include "ring.hpp"
#include "ring_options.hpp"
#include "unique_fd.hpp"

namespace uring {

class lab_worker {
 public:
  lab_worker(const lab_switches& switches, const ring_options& ring, const buffer_options& buffers,
             common::unique_fd listener, int stop_fd)
      : switches_{switches},
        listener_{std::move(listener)},
        ring_{switches, ring},
        echo_{switches, buffers, ring_} {
    if (switches_.nonblocking) set_nonblocking(listener_.get());
    ring_.start(pack(nullptr, lab_request::stop),
                [=](::io_uring_sqe& sqe) { ::io_uring_prep_poll_add(&sqe, stop_fd, POLLIN); });
    accept();
  }
  lab_worker(lab_worker&&) = delete;  // the kernel has its clients' addresses
  // Cancels the requests first, because echo_ has their buffers and is destroyed before ring_.
  ~lab_worker() { ring_.cancel_all(); }

  // Serves until the stop.
  lab_counts run() {
    while (!has_stopped_) {
      ring_.turn([this](const completion& done) { handle(done); });
    }
    lab_counts all = ring_.counts();
    all.sends = echo_.sends();
    return all;
  }

 private:
  static void set_nonblocking(int fd) {
    common::check(::fcntl(fd, F_SETFL, O_NONBLOCK), "fcntl O_NONBLOCK");
  }

  void accept() {
    ring_.start(pack(nullptr, lab_request::accept), [this](::io_uring_sqe& sqe) {
      ::io_uring_prep_multishot_accept(&sqe, listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    });
  }

  void handle(const completion& done) {
    lab_client* const client = client_in(done.user_data);
    switch (request_in(done.user_data)) {
      case lab_request::accept:
        return on_accept(done);
      case lab_request::recv:
        echo_.on_recv(*client, done);
        break;
      case lab_request::send:
        echo_.on_send(*client, done);
        break;
      case lab_request::stop:
        has_stopped_ = true;
        return;
    }
    if (client->is_gone()) {
      clients_.remove_if([client](const lab_client& each) { return &each == client; });
    }
  }

  void on_accept(const completion& done) {
    if (done.res >= 0) {
      lab_client& client = clients_.emplace_back();
      client.socket = common::unique_fd{done.res};
      if (switches_.nonblocking) set_nonblocking(done.res);
      if (switches_.nagle) {
        const int off = 0;
        ::setsockopt(done.res, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off);
      }
      echo_.begin(client);
    }
    if ((done.flags & IORING_CQE_F_MORE) == 0) accept();
  }

  lab_switches switches_;
  common::unique_fd listener_;
  std::list<lab_client> clients_;
  lab_ring ring_;
  lab_echo echo_;
  bool has_stopped_ = false;
};

}  // namespace uring
