// SPDX-License-Identifier: MIT
// The laboratory's echo. Each client has one recv for all bytes, or one for each message, and a
// send for the bytes that have come.
// Owns     the buffers that clients share.
// Lifetime the ring must outlive it. It must outlive every request of a client.
// Threads  the one that runs the ring.
// Errors   the client's own state says how it has ended.
// Rule     each client has at most one send in flight, so that bytes stay in order.
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer_pool.hpp"
#include "buffer_ring.hpp"
#include "lab_client.hpp"
#include "lab_ring.hpp"
#include "lab_switches.hpp"
#include "ring.hpp"

namespace uring {

class lab_echo {
 public:
  lab_echo(const lab_switches& switches, const buffer_options& buffers, lab_ring& ring)
      : one_shot_{switches.one_shot},
        buffers_{buffers},
        ring_{ring},
        memory_(one_shot_ ? 0 : buffers.count * buffers.bytes),
        supply_{ring.queue(), 0, buffers.count} {
    if (one_shot_) return;
    for (std::size_t id = 0; id < buffers.count; ++id) give_back(static_cast<buffer_id>(id));
  }

  [[nodiscard]] std::uint64_t sends() const noexcept { return sends_; }

  void begin(lab_client& client) {
    if (one_shot_) client.own.resize(buffers_.bytes);
    recv(client);
  }
  void on_recv(lab_client& client, const completion& done);
  void on_send(lab_client& client, const completion& done);

 private:
  void recv(lab_client& client);
  void send(lab_client& client);

  [[nodiscard]] std::span<std::byte> buffer(buffer_id id) noexcept {
    return std::span{memory_}.subspan(id * buffers_.bytes, buffers_.bytes);
  }
  void give_back(buffer_id id) {
    if (!one_shot_) supply_.give(id, buffer(id));
  }

  bool one_shot_;
  buffer_options buffers_;
  lab_ring& ring_;
  std::vector<std::byte> memory_;
  buffer_ring supply_;
  std::uint64_t sends_ = 0;
};

inline void lab_echo::recv(lab_client& client) {
  client.receives = true;
  ring_.start(pack(&client, lab_request::recv), [&](::io_uring_sqe& sqe) {
    if (one_shot_) {
      ::io_uring_prep_recv(&sqe, client.socket.get(), client.own.data(), client.own.size(), 0);
      return;
    }
    ::io_uring_prep_recv_multishot(&sqe, client.socket.get(), nullptr, 0, 0);
    sqe.flags |= IOSQE_BUFFER_SELECT;
    sqe.buf_group = supply_.group();
  });
}

inline void lab_echo::on_recv(lab_client& client, const completion& done) {
  client.receives = (done.flags & IORING_CQE_F_MORE) != 0;
  const bool has_buffer = (done.flags & IORING_CQE_F_BUFFER) != 0;
  const auto id = static_cast<buffer_id>(done.flags >> IORING_CQE_BUFFER_SHIFT);
  if (done.res > 0) {
    const std::span<std::byte> whole = has_buffer ? buffer(id) : std::span{client.own};
    client.unsent.push_back({whole.first(static_cast<std::size_t>(done.res)), id});
    if (client.unsent.size() == 1) send(client);
    if (one_shot_) return;  // the next recv comes after the send
  } else {
    if (has_buffer) give_back(id);
    const bool passes = done.res == -ENOBUFS || done.res == -EAGAIN || done.res == -EINTR;
    if (!passes) client.has_ended = true;
  }
  if (!client.receives && !client.has_ended) recv(client);
}

inline void lab_echo::send(lab_client& client) {
  ring_.start(pack(&client, lab_request::send), [&](::io_uring_sqe& sqe) {
    const std::span<std::byte> bytes = client.unsent.front().bytes;
    ::io_uring_prep_send(&sqe, client.socket.get(), bytes.data(), bytes.size(),
                         MSG_NOSIGNAL | MSG_WAITALL);
  });
}

inline void lab_echo::on_send(lab_client& client, const completion& done) {
  ++sends_;
  const bool is_lost = done.res != static_cast<std::int32_t>(client.unsent.front().bytes.size());
  give_back(client.unsent.front().id);
  client.unsent.pop_front();
  if (is_lost) {  // with MSG_WAITALL a send is short only if the client is lost
    client.has_ended = true;
    ::shutdown(client.socket.get(), SHUT_RDWR);  // ends a recv that is in flight
    for (const lab_client::piece& each : client.unsent) give_back(each.id);
    client.unsent.clear();
  }
  if (!client.unsent.empty()) {
    send(client);
  } else if (one_shot_ && !client.has_ended) {
    recv(client);
  }
}

}  // namespace uring
