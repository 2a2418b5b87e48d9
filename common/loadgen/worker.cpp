// SPDX-License-Identifier: MIT
#include "worker.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "errors.hpp"

namespace loadgen {
namespace {

constexpr std::size_t buffer_bytes = byte_loop::piece_bytes_max;
constexpr std::size_t events_max = 256;
constexpr std::int64_t check_interval_ns_max = 250'000'000;
constexpr std::int64_t goodbye_ns = 1'000'000'000;
constexpr std::uint64_t stop_token = std::numeric_limits<std::uint64_t>::max();

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1};
}

}  // namespace

worker::worker(const worker_setup& setup, std::unique_ptr<exchange> talk,
               std::vector<common::unique_fd> sockets)
    : setup_{setup},
      talk_{std::move(talk)},
      requests_{talk_->requests()},
      request_bytes_{talk_->request_bytes()},
      epoll_{common::check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")},
      connections_(sockets.size()),
      started_ns_{std::make_unique_for_overwrite<std::int64_t[]>(sockets.size() * setup.inflight)},
      buffer_{std::make_unique_for_overwrite<std::byte[]>(buffer_bytes)},
      open_{sockets.size()} {
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    connections_[i].socket = std::move(sockets[i]);
    connections_[i].send_position = static_cast<std::uint32_t>(talk_->first_request(i));
  }
}

void worker::run(const schedule& plan) {
  plan_ = plan;
  requests_left_ = plan.requests;
  turn_ns_ = now_ns();
  if (turn_ns_ >= plan_.measure_from_ns) begin_measuring();
  open_all();
  while (!finished()) turn();
  end_measuring();
  if (!result_.interrupted) say_goodbye();
  for (const auto& [status, count] : talk_->statuses()) {
    result_.statuses[status] += count;
    if (status >= 400) result_.bad_statuses += count;
  }
}

// --- The loop ------------------------------------------------------------------------------------

void worker::open_all() {
  ::epoll_event stop{.events = EPOLLIN, .data = {.u64 = stop_token}};
  common::check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, setup_.stop_fd, &stop), "epoll_ctl");
  std::size_t left = connections_.size();
  for (connection& each : connections_) {
    watch(each, EPOLL_CTL_ADD);
    // Few requests are spread over all connections, not sent by the first ones alone.
    const std::uint64_t fair_share = (requests_left_ - 1) / left-- + 1;
    const std::int64_t now = now_ns();
    each.progress_ns = now;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(setup_.inflight, fair_share); ++i) {
      if (may_start(now)) start_request(each, now);
    }
    send(each);
  }
}

void worker::turn() {
  std::array<::epoll_event, events_max> events;
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events_max, timeout_ms());
  if (ready == -1 && errno != EINTR) common::throw_errno("epoll_wait");
  turn_ns_ = now_ns();
  if (phase_ == phase::warming_up && turn_ns_ >= plan_.measure_from_ns) begin_measuring();
  if (phase_ == phase::measuring && turn_ns_ >= plan_.until_ns) end_measuring();
  // All receives, then all sends: the CPU keeps the code of each in its cache. Taking turns cost
  // 1 % more a request, measured; a ring instead of epoll cost no less.
  const auto batch = std::span{events}.first(static_cast<std::size_t>(std::max(ready, 0)));
  for (const ::epoll_event& event : batch) {
    if (event.data.u64 == stop_token) {
      result_.interrupted = true;
      return;
    }
    on_event(connections_[event.data.u64], event.events);
  }
  for (const ::epoll_event& event : batch) {
    connection& each = connections_[event.data.u64];
    if (each.now == state::open && each.unsent_bytes > 0) send(each);
  }
  if (turn_ns_ >= next_check_ns_) close_stalled();
}

void worker::begin_measuring() {
  phase_ = phase::measuring;
  at_begin_ = read_thread_times();
  result_.began_ns = last_completed_ns_ = now_ns();
}

void worker::end_measuring() {
  if (phase_ == phase::measuring) {
    // A number of requests ends with the last answer, a time when it is over.
    const std::int64_t now = now_ns();
    result_.ended_ns = plan_.by_number() ? last_completed_ns_ : std::min(now, plan_.until_ns);
    result_.cpu = read_thread_times() - at_begin_;
    const double elapsed_s = static_cast<double>(now - result_.began_ns) / 1e9;
    if (elapsed_s > 0) {
      result_.cpu_utilization = std::min(1.0, result_.cpu.running_s() / elapsed_s);
      result_.ready_share = std::min(1.0, result_.cpu.ready_s() / elapsed_s);
    }
  }
  phase_ = phase::over;
}

bool worker::finished() const {
  if (open_ == 0 || result_.interrupted) return true;
  return in_flight_ == 0 && !may_start(turn_ns_);
}

int worker::timeout_ms() const {
  std::int64_t wake_ns = next_check_ns_;
  if (phase_ == phase::warming_up) wake_ns = std::min(wake_ns, plan_.measure_from_ns);
  if (phase_ == phase::measuring) wake_ns = std::min(wake_ns, plan_.until_ns);
  const std::int64_t left_ns = std::max<std::int64_t>(wake_ns - turn_ns_, 0);
  return static_cast<int>((left_ns + 999'999) / 1'000'000);
}

void worker::close_stalled() {
  const std::int64_t patience_ns = setup_.stall_timeout_ns;
  next_check_ns_ = turn_ns_ + std::min(patience_ns / 8, check_interval_ns_max);
  for (connection& each : connections_) {
    if (each.now == state::closed || each.in_flight == 0) continue;
    if (turn_ns_ - each.progress_ns < patience_ns) continue;
    const double patience_s = static_cast<double>(patience_ns) / 1e9;
    fail(each, fault::stalled,
         fmt::format("no byte for {} s; {}", patience_s, talk_->describe_progress(slot(each))));
  }
}

// A server that has answered everything owes us its FIN and not one byte more.
void worker::say_goodbye() {
  for (connection& each : connections_) {
    if (each.now == state::open) ::shutdown(each.socket.get(), SHUT_WR);
  }
  turn_ns_ = now_ns();
  const std::int64_t deadline_ns = turn_ns_ + goodbye_ns;
  std::array<::epoll_event, events_max> events;
  while (open_ > 0 && turn_ns_ < deadline_ns) {
    const auto left_ms = static_cast<int>((deadline_ns - turn_ns_) / 1'000'000 + 1);
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events_max, left_ms);
    turn_ns_ = now_ns();
    for (int i = 0; i < ready; ++i) {
      const std::uint64_t token = events[static_cast<std::size_t>(i)].data.u64;
      if (token == stop_token) return;
      on_goodbye_event(connections_[token]);
    }
  }
  result_.left_open = open_;
}

void worker::on_goodbye_event(connection& each) {
  const ::ssize_t received = ::recv(each.socket.get(), buffer_.get(), buffer_bytes, 0);
  if (received == -1 && errno == EAGAIN) return;
  if (received > 0) return take(each, {buffer_.get(), static_cast<std::size_t>(received)});
  close(each);
}

// --- One connection ------------------------------------------------------------------------------

void worker::on_event(connection& each, std::uint32_t events) {
  if (each.now == state::connecting) on_connected(each);
  if (each.now == state::open && (events & ~std::uint32_t{EPOLLOUT}) != 0) receive(each, events);
}

void worker::receive(connection& each, std::uint32_t events) {
  const ::ssize_t received = ::recv(each.socket.get(), buffer_.get(), buffer_bytes, 0);
  if (received == 0) return on_end(each);
  if (received == -1) {
    if (errno != EAGAIN) fail_with_errno(each, errno);
    return;
  }
  each.progress_ns = turn_ns_;
  take(each, {buffer_.get(), static_cast<std::size_t>(received)});
  const bool more =
      static_cast<std::size_t>(received) == buffer_bytes || (events & EPOLLRDHUP) != 0;
  if (more && each.now == state::open) watch(each, EPOLL_CTL_MOD);
}

void worker::take(connection& each, std::span<const std::byte> received) {
  while (!received.empty()) {
    if (each.in_flight == 0) {
      return fail(each, fault::corrupted,
                  fmt::format("{} bytes that nobody asked for", received.size()));
    }
    const taken part = talk_->take(slot(each), received);
    if (part.result == verdict::wrong) return fail(each, fault::corrupted, talk_->why());
    each.answer_bytes += part.bytes;
    received = received.subspan(part.bytes);
    if (part.result == verdict::unfinished) continue;
    finish_request(each, now_ns());
    if (part.result == verdict::answered_last) return reconnect(each);
  }
}

void worker::send(connection& each) {
  const auto piece = requests_.piece(each.send_position, each.unsent_bytes);
  const ::ssize_t sent = ::send(each.socket.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
  if (sent == -1) {
    if (errno != EAGAIN) fail_with_errno(each, errno);
    return;
  }
  const auto count = static_cast<std::size_t>(sent);
  const std::size_t next = requests_.advance(each.send_position, count);
  each.send_position = static_cast<std::uint32_t>(next);
  each.unsent_bytes -= count;
  each.progress_ns = turn_ns_;
  if (count == piece.size() && each.unsent_bytes > 0) watch(each, EPOLL_CTL_MOD);
}

void worker::on_end(connection& each) {
  if (each.in_flight == 0) return close(each);  // no answer is missing
  switch (talk_->take_end(slot(each))) {
    case verdict::answered_last:
      finish_request(each, now_ns());
      return reconnect(each);
    case verdict::wrong:
      return fail(each, fault::corrupted, talk_->why());
    default:
      return fail(each, fault::closed, talk_->describe_progress(slot(each)));
  }
}

void worker::on_connected(connection& each) {
  const int error = connect_error(each.socket.get());
  if (error != 0) return fail_with_errno(each, error);
  each.now = state::open;
}

// The server announced that it closes. What it has not answered is sent again.
void worker::reconnect(connection& each) {
  if (each.in_flight == 0) return close(each);
  ++result_.reconnects;
  talk_->reconnect(slot(each));
  each.send_position = static_cast<std::uint32_t>(talk_->first_request(slot(each)));
  each.unsent_bytes = each.in_flight * request_bytes_;
  each.answer_bytes = 0;
  each.progress_ns = turn_ns_;
  each.socket.reset();  // first: at the limit of descriptors there is no second one
  each.socket = setup_.server.start_connecting();
  if (!each.socket.valid()) return fail_with_errno(each, errno);
  each.now = state::connecting;
  watch(each, EPOLL_CTL_ADD);
}

void worker::close(connection& each) {
  each.socket.reset();
  each.now = state::closed;
  --open_;
  in_flight_ -= std::exchange(each.in_flight, 0);
  each.unsent_bytes = 0;
}

void worker::fail(connection& each, fault kind, const std::string& detail) {
  const std::size_t number = setup_.first_connection + slot(each);
  result_.faults.add(
      kind, fmt::format("connection {}, after {} answers: {}", number, each.answers, detail));
  close(each);
}

void worker::fail_with_errno(connection& each, int error) {
  fail(each, classify_socket_errno(error), common::describe_errno(error));
}

// --- One request ---------------------------------------------------------------------------------

bool worker::may_start(std::int64_t now_ns) const noexcept {
  if (phase_ == phase::warming_up) return true;
  return phase_ == phase::measuring && requests_left_ > 0 && now_ns < plan_.until_ns;
}

void worker::start_request(connection& each, std::int64_t now_ns) {
  if (phase_ == phase::measuring) --requests_left_;
  const std::uint32_t place = each.oldest + each.in_flight;
  started_ns(each, place < setup_.inflight ? place : place - setup_.inflight) = now_ns;
  each.unsent_bytes += request_bytes_;
  ++each.in_flight;
  ++in_flight_;
}

// The oldest request of the connection is answered, and the next one takes its place.
void worker::finish_request(connection& each, std::int64_t now_ns) {
  const std::int64_t request_ns = started_ns(each, each.oldest);
  each.oldest = each.oldest + 1 < setup_.inflight ? each.oldest + 1 : 0;
  --each.in_flight;
  --in_flight_;
  ++each.answers;
  ++result_.on_wire;
  const std::uint64_t bytes = std::exchange(each.answer_bytes, 0);
  const bool of_warm_up = request_ns < result_.began_ns;
  // A run by time counts what ends in its window, a run by number the requests it has sent.
  if (phase_ == phase::measuring && now_ns < plan_.until_ns && !(of_warm_up && plan_.by_number())) {
    ++result_.completed;
    result_.bytes += bytes;
    last_completed_ns_ = now_ns;
    if (!of_warm_up) result_.latency.add(now_ns - request_ns);
  }
  if (may_start(now_ns)) start_request(each, now_ns);
}

void worker::watch(connection& each, int operation) {
  ::epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                      .data = {.u64 = slot(each)}};
  common::check(::epoll_ctl(epoll_.get(), operation, each.socket.get(), &event), "epoll_ctl");
}

std::size_t worker::slot(const connection& each) const noexcept {
  return static_cast<std::size_t>(&each - connections_.data());
}

std::int64_t& worker::started_ns(const connection& each, std::uint32_t place) noexcept {
  return started_ns_[slot(each) * setup_.inflight + place];
}

}  // namespace loadgen
