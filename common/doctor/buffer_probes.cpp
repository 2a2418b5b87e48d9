// SPDX-License-Identifier: MIT
// Buffers that the kernel chooses: legacy groups, buffer rings, and what is built on them.
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "newer_abi.hpp"
#include "probe_error.hpp"
#include "probe_ring.hpp"
#include "probe_sockets.hpp"
#include "probes.hpp"

namespace doctor {
namespace {

constexpr std::uint16_t group_id = 7;
constexpr std::size_t buffers = 4;  // a power of two, as the kernel asks
constexpr std::size_t buffer_bytes = 16;

using buffer_pool = std::array<std::array<char, buffer_bytes>, buffers>;

// A registered buffer ring with every buffer of its pool lent to the kernel.
class lent_buffers {
 public:
  lent_buffers(probe_ring& ring, unsigned length_bytes, std::uint16_t flags) : ring_{ring} {
    // The kernel wants whole pages; an anonymous mapping is made of them, and zeroed.
    void* const memory =
        ::mmap(nullptr, entries_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw probe_error{"mmap of a buffer ring", errno};
    entries_ = static_cast<::io_uring_buf_ring*>(memory);
    const abi::buffer_ring_registration wanted{
        .ring_addr = reinterpret_cast<std::uintptr_t>(memory),
        .ring_entries = buffers,
        .group_id = group_id,
        .flags = flags};
    const int answer = ::io_uring_register(static_cast<unsigned>(ring.fd()),
                                           IORING_REGISTER_PBUF_RING, &wanted, 1);
    if (answer < 0) {
      ::munmap(memory, entries_bytes);
      throw probe_error{"io_uring_register PBUF_RING", answer};
    }
    for (std::uint16_t id = 0; id < buffers; ++id) {
      ::io_uring_buf_ring_add(entries_, pool_.at(id).data(), length_bytes, id, buffers - 1, id);
    }
    ::io_uring_buf_ring_advance(entries_, buffers);
  }
  lent_buffers(lent_buffers&&) = delete;  // the kernel writes into the pool
  ~lent_buffers() {
    ::io_uring_unregister_buf_ring(ring_.native(), group_id);
    ::munmap(entries_, entries_bytes);
  }

  // The bytes that a completion brought, as far as they lie in its first buffer.
  [[nodiscard]] std::string_view text(const completion& of, std::size_t offset = 0) const {
    const std::size_t id = of.flags >> IORING_CQE_BUFFER_SHIFT;
    const auto& buffer = pool_.at(id);
    return std::string_view{buffer.data(), buffer.size()}.substr(offset,
                                                                 static_cast<std::size_t>(of.res));
  }

 private:
  static constexpr std::size_t entries_bytes = buffers * sizeof(::io_uring_buf);

  probe_ring& ring_;
  ::io_uring_buf_ring* entries_ = nullptr;
  buffer_pool pool_{};
};

completion need_buffer(const completion& received, const char* request) {
  need(received.res, request);
  if ((received.flags & IORING_CQE_F_BUFFER) == 0) {
    throw probe_error{std::string{request} + " succeeded without naming its buffer"};
  }
  return received;
}

void expect_text(std::string_view text, std::string_view expected) {
  if (text != expected) throw probe_error{"the chosen buffer does not hold what was sent"};
}

::io_uring_sqe& prepare_selecting_recv(probe_ring& ring, int socket) {
  ::io_uring_sqe& sqe = ring.prepare(1, ::io_uring_prep_recv, socket, nullptr, 0, 0);
  sqe.flags |= IOSQE_BUFFER_SELECT;
  sqe.buf_group = group_id;
  return sqe;
}

void provide_buffers() {
  buffer_pool pool{};
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_provide_buffers, pool.data(), static_cast<int>(buffer_bytes),
               static_cast<int>(buffers), group_id, 0);
  ring.finish("provide_buffers");
  put(sockets.there.get(), "hello");
  prepare_selecting_recv(ring, sockets.here.get()).len = buffer_bytes;
  const completion received = need_buffer(ring.finish("recv"), "recv");
  const auto& chosen = pool.at(received.flags >> IORING_CQE_BUFFER_SHIFT);
  expect_text({chosen.data(), static_cast<std::size_t>(received.res)}, "hello");
}

void register_buffer_ring() {
  const loopback_pair sockets;
  probe_ring ring;
  const lent_buffers lent{ring, buffer_bytes, 0};
  put(sockets.there.get(), "hello");
  prepare_selecting_recv(ring, sockets.here.get());
  expect_text(lent.text(need_buffer(ring.finish("recv"), "recv")), "hello");
}

void multishot_recv() {
  const loopback_pair sockets;
  probe_ring ring;
  const lent_buffers lent{ring, buffer_bytes, 0};
  prepare_selecting_recv(ring, sockets.here.get()).ioprio |= IORING_RECV_MULTISHOT;
  ring.submit();
  for (const std::string_view word : {"one", "two"}) {
    put(sockets.there.get(), word);
    const completion received = need_buffer(ring.wait(), "multishot recv");
    expect_text(lent.text(received), word);
    if ((received.flags & IORING_CQE_F_MORE) == 0) {
      throw probe_error{"the multishot recv ended, although buffers and the peer were there"};
    }
  }
}

void incremental_buffers() {
  const loopback_pair sockets;
  probe_ring ring;
  const lent_buffers lent{ring, buffer_bytes, abi::buffer_ring_incremental};
  std::size_t offset = 0;
  for (const std::string_view word : {"one", "three"}) {
    put(sockets.there.get(), word);
    prepare_selecting_recv(ring, sockets.here.get());
    const completion received = need_buffer(ring.finish("recv"), "recv");
    if ((received.flags & abi::cqe_buffer_more) == 0) {
      throw probe_error{"a buffer that had room left was given back"};
    }
    expect_text(lent.text(received, offset), word);
    offset += word.size();
  }
}

// Four bytes of each buffer are lent, so eight bytes take two of them in one completion.
void recv_bundle() {
  const loopback_pair sockets;
  probe_ring ring;
  need_bit(ring.features(), abi::feature_recvsend_bundle, "IORING_FEAT_RECVSEND_BUNDLE");
  const lent_buffers lent{ring, 4, 0};
  put(sockets.there.get(), "eightful");
  prepare_selecting_recv(ring, sockets.here.get()).ioprio |= abi::recvsend_bundle;
  const completion received = need_buffer(ring.finish("recv in a bundle"), "recv in a bundle");
  if (received.res != 8) {
    throw probe_error{"a bundle brought " + std::to_string(received.res) + " of 8 bytes"};
  }
}

constexpr std::array buffer_features{
    feature{"provide_buffers", "buffers", "5.7", "a recv that takes a buffer from a legacy group",
            &provide_buffers},
    feature{"register_buffer_ring", "buffers", "5.19", "a recv with a buffer from a buffer ring",
            &register_buffer_ring},
    feature{"multishot_recv", "buffers", "6.0", "two messages from one recv request",
            &multishot_recv},
    feature{"recv_bundle", "buffers", "6.10", "one completion that fills several buffers",
            &recv_bundle},
    feature{"incremental_buffers", "buffers", "6.12", "two messages into one buffer, end to end",
            &incremental_buffers},
};

}  // namespace

std::span<const feature> buffer_probes() {
  return buffer_features;
}

}  // namespace doctor
