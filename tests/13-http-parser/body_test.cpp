// SPDX-License-Identifier: MIT
// Task 13.3: where a body ends, and its data out of pieces.
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "body_framing.hpp"
#include "guarded_text.hpp"
#include "parse_transcript.hpp"
#include "refusal.hpp"
#include "request_body.hpp"
#include "request_limits.hpp"
#include "shown_enums.hpp"

using course_test::guarded_text;
using uring::http::body_end;
using uring::http::body_framing;
using uring::http::framing_fields;
using uring::http::printable;
using uring::http::refusal;
using uring::http::request_body;
using uring::http::request_limits;

namespace {

struct said {
  std::vector<std::string> lengths;  // the values of Content-Length, line by line
  std::vector<std::string> codings;  // those of Transfer-Encoding
};

std::string lines_of(const said& fields) {
  std::string lines;
  for (const std::string& each : fields.codings) lines += "Transfer-Encoding: " + each + "\\r\\n";
  return lines;
}

refusal decide(const said& fields, int minor, body_framing& body) {
  framing_fields all;
  for (const std::string& each : fields.lengths) all.on_content_length(each);
  for (const std::string& each : fields.codings) all.on_transfer_encoding(each);
  return uring::http::decide_framing(all, minor, {}, body);
}

int status_of(const said& fields, int minor = 1) {
  body_framing body;
  return decide(fields, minor, body).status;
}

// How it ended, what was decoded, and what nobody took.
struct decoded {
  int status = 0;  // of the refusal
  bool is_over = false;
  std::string data;
  std::string left;
};

// `sent` in pieces of at most so many bytes, each time in other memory.
decoded decode(const body_framing& framing, std::string_view sent, std::size_t piece,
               const request_limits& limits = {}) {
  request_body body{framing};
  decoded result;
  while (true) {
    const guarded_text text{result.left + std::string{sent.substr(0, piece)}};
    sent.remove_prefix(std::min(piece, sent.size()));
    std::string_view received = text.view();
    request_body::taken taken;
    do {
      taken = body.take(received, limits);
      result.data += taken.data;
    } while (taken.what == request_body::step::data);
    result.left = received;
    result.status = taken.refused.status;
    result.is_over = taken.what == request_body::step::end;
    if (sent.empty() || result.status > 0) return result;
  }
}

constexpr body_framing chunked{.ends = body_end::chunked, .bytes = 0};

decoded decode_chunks(std::string_view sent, std::size_t piece = 1000,
                      const request_limits& limits = {}) {
  return decode(chunked, sent, piece, limits);
}

constexpr int chunks_depend_on_the_cut = -1;

// The status of a refusal, or 0, if it is the same in one piece and byte by byte.
int status_of_chunks(std::string_view sent, const request_limits& limits = {}) {
  const int at_once = decode_chunks(sent, sent.size() + 1, limits).status;
  return decode_chunks(sent, 1, limits).status == at_once ? at_once : chunks_depend_on_the_cut;
}

}  // namespace

TEST_CASE("13.3 Content-Length is a number of bytes", "[13.3]") {
  for (const std::string value : {"0", "1", "17", "0017", "1048576", "5, 5", "5 ,\t5,5"}) {
    body_framing body;
    INFO("Content-Length: " << value << " (rfc9110, 8.6)");
    CHECK(decide({.lengths = {value}, .codings = {}}, 1, body).status == 0);
    CHECK(body.ends == body_end::counted);
    CHECK(body.bytes == std::stoull(value));
  }
  body_framing body;
  {
    INFO("two lengths that say the same have one reading (rfc9112, 6.3)");
    CHECK(decide({.lengths = {"5", "5"}, .codings = {}}, 1, body).status == 0);
    CHECK(body.bytes == 5);
  }
  UNSCOPED_INFO("HTTP/1.0 has no codings, but it has Content-Length (rfc1945, 10.4)");
  CHECK(decide({.lengths = {"5"}, .codings = {}}, 0, body).status == 0);
}

TEST_CASE("13.3 a length that is not clear is a bad request", "[13.3]") {
  for (const std::string value :
       {"", ",", "-1", "-0", "+5", "5x", "x", "0x5", "5 5", "5_000", "5.0", "1e3", "5, 6", "5,x",
        "5;5", "18446744073709551616", "99999999999999999999999999", "\"5\"", "\xb2"}) {
    INFO("Content-Length: " << printable(value) << " (rfc9112, 6.3)");
    CHECK(status_of({.lengths = {value}, .codings = {}}) == 400);
    CHECK(status_of({.lengths = {value}, .codings = {}}, 0) == 400);
  }
  INFO("two lengths: whichever you take, somebody else takes the other one");
  CHECK(status_of({.lengths = {"5", "6"}, .codings = {}}) == 400);
  CHECK(status_of({.lengths = {"6", "5"}, .codings = {}}) == 400);
  CHECK(status_of({.lengths = {"5", ""}, .codings = {}}) == 400);
  CHECK(status_of({.lengths = {"x", "5"}, .codings = {}}) == 400);
  CHECK(status_of({.lengths = {"0", "5"}, .codings = {}}) == 400);
}

TEST_CASE("13.3 a body may be as long as its limit, and not a byte longer", "[13.3]") {
  framing_fields fields;
  fields.on_content_length("8");
  body_framing body;
  UNSCOPED_INFO("a body of exactly its limit is taken");
  CHECK(uring::http::decide_framing(fields, 1, {.body_bytes_max = 8}, body).status == 0);
  INFO("413 says so before a byte of the body has come (rfc9110, 15.5.14)");
  CHECK(uring::http::decide_framing(fields, 1, {.body_bytes_max = 7}, body).status == 413);
  CHECK(status_of({.lengths = {"18446744073709551615"}, .codings = {}}) == 413);
}

TEST_CASE("13.3 a length is clear before it is too large", "[13.3]") {
  for (const std::string value : {"5, 99999999999", "99999999999, 5", "99999999999, x"}) {
    UNSCOPED_INFO("Content-Length: "
                  << value
                  << " is no number at all (400), so it cannot be "
                     "compared with a limit (413): ask in the order that the comment gives");
    CHECK(status_of({.lengths = {value}, .codings = {}}) == 400);
  }
}

TEST_CASE("13.3 a body may come in chunks", "[13.3]") {
  for (const said& fields : {said{{}, {"chunked"}}, said{{}, {"Chunked"}}, said{{}, {" chunked\t"}},
                             said{{}, {",chunked,"}}, said{{}, {"", "chunked"}}}) {
    body_framing body;
    INFO(lines_of(fields) << " (rfc9112, 6.1)");
    CHECK(decide(fields, 1, body).status == 0);
    CHECK(body.ends == body_end::chunked);
  }
}

TEST_CASE("13.3 a coding whose end cannot be found is a bad request", "[13.3]") {
  for (const said& fields :
       {said{{}, {""}}, said{{}, {","}}, said{{}, {"identity"}}, said{{}, {"gzip"}},
        said{{}, {"xchunked"}}, said{{}, {"chunked;q=1"}}, said{{}, {"\"chunked\""}},
        said{{}, {"chunked, gzip"}}, said{{}, {"chunked", "identity"}},
        said{{}, {"chunked, chunked"}}, said{{}, {"chunked", "chunked"}},
        said{{}, {"gzip, chunked, chunked"}}, said{{}, {"chunked, gzip, chunked"}}}) {
    UNSCOPED_INFO(lines_of(fields)
                  << ": chunked is not the last, or is there twice; an empty field counts, too "
                     "(rfc9112, 6.3). This 400 comes before the 501 for other codings");
    CHECK(status_of(fields) == 400);
  }
}

TEST_CASE("13.3 a coding that we do not know is not implemented", "[13.3]") {
  INFO("the end can be found, but nobody can undo gzip: 501 (rfc9112, 6.1)");
  CHECK(status_of({.lengths = {}, .codings = {"gzip, chunked"}}) == 501);
  CHECK(status_of({.lengths = {}, .codings = {"gzip", "chunked"}}) == 501);
}

TEST_CASE("13.3 a length and a coding together are refused", "[13.3]") {
  INFO("two readers would see the end at two places: this is request smuggling");
  CHECK(status_of({.lengths = {"5"}, .codings = {"chunked"}}) == 400);
  CHECK(status_of({.lengths = {"0"}, .codings = {"chunked"}}) == 400);
  CHECK(status_of({.lengths = {"5"}, .codings = {"identity"}}) == 400);
  CHECK(status_of({.lengths = {"5"}, .codings = {"gzip, chunked"}}) == 400);
  CHECK(status_of({.lengths = {"x"}, .codings = {"chunked"}}) == 400);
}

TEST_CASE("13.3 HTTP/1.0 has no transfer codings", "[13.3]") {
  INFO("a reader of HTTP/1.0 would not see the chunks (rfc9112, 6.1)");
  CHECK(status_of({.lengths = {}, .codings = {"chunked"}}, 0) == 400);
  CHECK(status_of({.lengths = {}, .codings = {"gzip, chunked"}}, 0) == 400);
}

TEST_CASE("13.3 chunks are the same body however they are cut", "[13.3]") {
  const std::string sent = "5\r\nhello\r\n1;x=y\r\n,\r\nA\r\n 123456789\r\n0\r\nT: 1\r\n\r\nGET";
  for (std::size_t piece = 1; piece <= sent.size(); ++piece) {
    const decoded result = decode_chunks(sent, piece);
    {
      INFO("in pieces of " << piece);
      CHECK(result.status == 0);
      CHECK(result.is_over);
      CHECK(result.data == "hello, 123456789");
    }
    UNSCOPED_INFO("in pieces of " << piece << ": what is behind the body is another request");
    CHECK(printable(result.left) == "GET");
  }
  for (std::size_t bytes = 0; bytes + 3 < sent.size(); ++bytes) {
    INFO("only the first " << bytes << " bytes have come");
    CHECK_FALSE(decode_chunks(sent.substr(0, bytes)).is_over);
    CHECK(decode_chunks(sent.substr(0, bytes)).status == 0);
  }
}

TEST_CASE("13.3 a chunk of size 0 ends the body, however it is written", "[13.3]") {
  for (const std::string sent :
       {"0\r\n\r\n", "000\r\n\r\n", "0;last\r\n\r\n", "0000000000000000\r\n\r\n"}) {
    INFO("behind a chunk of size 0 comes the trailer, and no data: " << printable(sent));
    CHECK(decode_chunks(sent).is_over);
    CHECK(decode_chunks(sent).data.empty());
  }
}

TEST_CASE("13.3 a size is hexadecimal digits", "[13.3]") {
  for (const std::string size : {"A", "a", "00a"}) {
    UNSCOPED_INFO(size << " is ten");
    CHECK(decode_chunks(size + "\r\n0123456789\r\n0\r\n\r\n").data == "0123456789");
  }
  for (const std::string line : {"", " 5", "5 ", "\t5", "-5", "+5", "0x5", "5x", "g", "5_0", "5.0",
                                 "5,5", "00000000000000005", "10000000000000000", ";a", "5 5"}) {
    UNSCOPED_INFO("“" << printable(line) << "” is no size (rfc9112, 7.1)");
    CHECK(status_of_chunks(line + "\r\nhello\r\n") == 400);
  }
}

TEST_CASE("13.3 an extension is looked at and ignored", "[13.3]") {
  for (const std::string extension : {";a", ";a=b", " ; a = b", ";a=\"b;c\"", ";a=\"\\\"\";d",
                                      ";a;b;c", "\t;a", ";a=\"\"", "\t;\ta\t=\tb ; c"}) {
    UNSCOPED_INFO("“" << printable(extension) << "” is an extension (rfc9112, 7.1.1)");
    CHECK(decode_chunks("5" + extension + "\r\nhello\r\n0\r\n\r\n").data == "hello");
  }
  for (const std::string extension :
       {";", ";;a", ";=b", ";a=", ";a=\"b", ";a b", ";a=b c", " a", ";a=\"b\"c", ";caf\xc3\xa9",
        ";a ", ";a\t", ";a=b ", ";a=\"b\" ", ";a; ", ";a=b; c ", "\t"}) {
    UNSCOPED_INFO("“" << printable(extension) << "” is none");
    CHECK(status_of_chunks("5" + extension + "\r\nhello\r\n") == 400);
  }
}

TEST_CASE("13.3 behind a chunk stands CR LF and nothing else", "[13.3]") {
  for (const std::string rest :
       {"x\r\n0\r\n\r\n", "\n0\r\n\r\n", "\r0\r\n\r\n", "0\r\n\r\n", " \r\n", "hello\r\n"}) {
    UNSCOPED_INFO("a chunk of 5 and then “" << printable(rest) << "” (rfc9112, 7.1)");
    CHECK(status_of_chunks("5\r\nhello" + rest) == 400);
  }
}

TEST_CASE("13.3 a control byte in the framing is a bad request", "[13.3]") {
  for (const std::string& sent :
       {std::string{"5\nhello\r\n0\r\n\r\n"}, std::string{"5;a\nb\r\nhello\r\n"},
        std::string{"5;a\rb\r\n"}, std::string{"5;a\0\r\n", 6}, std::string{"0\r\n\n"},
        std::string{"0\r\nA: b\n\r\n"}, std::string{"0\r\nA: b\rc\r\n\r\n"}}) {
    UNSCOPED_INFO(printable(sent));
    CHECK(status_of_chunks(sent) == 400);
  }
}

TEST_CASE("13.3 a chunked body may be as long as its limit, and not a byte longer", "[13.3]") {
  const request_limits limits{.body_bytes_max = 8};
  UNSCOPED_INFO("8 is the limit of all chunks together, and 5 and 3 are not too much");
  CHECK(decode_chunks("5\r\nhello\r\n3\r\n...\r\n0\r\n\r\n", 1000, limits).is_over);
  UNSCOPED_INFO("413, with the size that is too much, and before a byte of that chunk has come");
  CHECK(status_of_chunks("9\r\n", limits) == 413);
  UNSCOPED_INFO("8 is the limit of all chunks together, and 5 and 4 are too much");
  CHECK(status_of_chunks("5\r\nhello\r\n4\r\n", limits) == 413);
  UNSCOPED_INFO("3, 3 and 3 are too much, too: body_bytes_ is the sum of all sizes, not the last");
  CHECK(status_of_chunks("3\r\none\r\n3\r\ntwo\r\n3\r\n", limits) == 413);
  {
    INFO("the sum of the sizes overflows: then 5 and 2⁶⁴ - 5 are 0");
    CHECK(status_of_chunks("5\r\nhello\r\nfffffffffffffffb\r\n", limits) == 413);
    CHECK(status_of_chunks("5\r\nhello\r\nffffffffffffffff\r\n", limits) == 413);
  }
  const request_limits none{.body_bytes_max = std::numeric_limits<std::uint64_t>::max()};
  UNSCOPED_INFO("even the largest number is a limit: 5 and 2⁶⁴ - 1 are more");
  CHECK(status_of_chunks("5\r\nhello\r\nffffffffffffffff\r\n", none) == 413);
  UNSCOPED_INFO("a size has 64 bits, and left_, too: 2³² + 5 in 32 bits is 5");
  CHECK(decode_chunks("100000005\r\nhello\r\n", 1000, none).data == "hello\r\n");
}

TEST_CASE("13.3 extensions have a limit of their own, for the body as a whole", "[13.3]") {
  const request_limits limits{.chunk_line_bytes_max = 8, .chunk_extension_bytes_max = 6};
  const std::string chunk = "1;ab\r\nx\r\n";
  UNSCOPED_INFO("six bytes of extensions, where six are allowed");
  CHECK(decode_chunks(chunk + chunk + "0\r\n\r\n", 1000, limits).is_over);
  UNSCOPED_INFO("a body of one byte may not bring a megabyte of extensions (rfc9112, 7.1.1)");
  CHECK(status_of_chunks(chunk + chunk + "1;a\r\n", limits) == 400);
  UNSCOPED_INFO("all six of them in one chunk");
  CHECK(decode_chunks("1;abcde\r\nx\r\n0\r\n\r\n", 1000, limits).is_over);
  UNSCOPED_INFO("a line of eight bytes, where eight are allowed");
  CHECK(status_of_chunks("1;abcdef\r\n", {.chunk_line_bytes_max = 8}) == 0);
  UNSCOPED_INFO("a line of nine bytes, where eight are allowed");
  CHECK(status_of_chunks("1;abcdefg", {.chunk_line_bytes_max = 8}) == 400);
}

TEST_CASE("13.3 a trailer is fields, with a limit for all of them", "[13.3]") {
  UNSCOPED_INFO("behind the chunk of size 0 stand two fields and an empty line");
  CHECK(decode_chunks("0\r\nA: b\r\nC:\r\n\r\n").is_over);
  for (const std::string line : {"no colon", "A : b", " A: b", ": b"}) {
    UNSCOPED_INFO("“" << line << "” is no field");
    CHECK(status_of_chunks("0\r\n" + line + "\r\n\r\n") == 400);
  }
  const request_limits limits{.trailer_bytes_max = 8};
  UNSCOPED_INFO("eight bytes of trailer, where eight are allowed");
  CHECK(decode_chunks("0\r\nA: b\r\nC: d\r\n\r\n", 1000, limits).is_over);
  INFO("431: a line more, or a byte more, than the limit of the trailer");
  CHECK(status_of_chunks("0\r\nA: b\r\nC: de\r\n\r\n", limits) == 431);
  CHECK(status_of_chunks("0\r\nA: b\r\nC: d\r\nE:\r\n\r\n", limits) == 431);
}
