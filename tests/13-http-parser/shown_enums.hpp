// SPDX-License-Identifier: MIT
// Lets a red line of a test say “line_state::too_long”, and not 2.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>

#include "head_reader.hpp"
#include "http_grammar.hpp"
#include "request_target.hpp"

CATCH_REGISTER_ENUM(uring::http::line_state, uring::http::line_state::whole,
                    uring::http::line_state::incomplete, uring::http::line_state::too_long,
                    uring::http::line_state::bad_byte)
CATCH_REGISTER_ENUM(uring::http::body_end, uring::http::body_end::none,
                    uring::http::body_end::counted, uring::http::body_end::chunked,
                    uring::http::body_end::at_eof)
CATCH_REGISTER_ENUM(uring::http::request_method, uring::http::request_method::get,
                    uring::http::request_method::head, uring::http::request_method::post,
                    uring::http::request_method::put, uring::http::request_method::delete_,
                    uring::http::request_method::connect, uring::http::request_method::options,
                    uring::http::request_method::trace, uring::http::request_method::patch,
                    uring::http::request_method::other)
CATCH_REGISTER_ENUM(uring::http::target_form, uring::http::target_form::origin,
                    uring::http::target_form::absolute, uring::http::target_form::authority,
                    uring::http::target_form::asterisk)
