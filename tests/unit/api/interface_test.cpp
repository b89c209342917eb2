// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every function of the C interface with bad arguments: each call runs in a child, so that a crash is a
// failure that names the call.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/api/libsieve.h"
#include "unit/control/files.hpp"

namespace {

// No interface has this name, so the kernel refuses what gets so far.
constexpr const char* no_interface = "sieve-none0";
constexpr unsigned longest_call = 120; // seconds: ends a call that hangs

// A value that a parameter can take.
template <class T>
struct Value {
    std::string what{};
    std::function<T()> make{};
    bool refused = true; // the call fails; else it may do anything but crash
};

// A parameter: what it is called in messages, a value that fits, and others.
template <class T>
struct Parameter {
    std::string name{};
    std::function<T()> good{};
    std::vector<Value<T>> others{};
};

template <class T>
Value<T> null(bool refused = true) {
    return {"NULL", [] { return T{nullptr}; }, refused};
}

Parameter<const char*> text(const char* name, std::string good, std::vector<const char*> bad = {}) {
    Parameter<const char*> made{name, [good] { return ::strdup(good.c_str()); }, {null<const char*>()}};
    for (const char* one : bad)
        made.others.push_back({fmt::format("\"{:.20}\"", one), [one] { return one; }, true});
    return made;
}

Parameter<const char*> text_or_null(const char* name, const char* good, std::vector<const char*> bad) {
    Parameter<const char*> made = text(name, good, std::move(bad));
    made.others.front().refused = false;
    return made;
}

Parameter<const char*> hook() {
    return text_or_null("hook", "xdp", {"", "tc", "XDP"});
}
Parameter<const char*> set_name() {
    return text("name", "bad");
}

template <class T>
Parameter<T> number(const char* name, T good, std::vector<T> bad, std::vector<T> odd = {}) {
    Parameter<T> made{name, [good] { return good; }, {}};
    for (const T one : bad) made.others.push_back({fmt::format("{}", one), [one] { return one; }, true});
    for (const T one : odd) made.others.push_back({fmt::format("{}", one), [one] { return one; }, false});
    return made;
}

// Where a call puts something. The child ends before anybody frees it.
template <class T>
Parameter<T*> out(const char* name, bool may_be_null = false) {
    return {name, [] { return std::make_unique<T>().release(); }, {null<T*>(!may_be_null)}};
}

template <class T>
T* sized() {
    T* made = std::make_unique<T>().release();
    made->size = sizeof(T);
    return made;
}

// A structure that the call fills: no size is an error, since it says how much room there is.
template <class T>
Parameter<T*> room(const char* name, bool may_be_null = false) {
    Parameter<T*> made{name, sized<T>, {null<T*>(!may_be_null)}};
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, sizeof(T) + 8, SIZE_MAX})
        made.others.push_back({fmt::format("of size {}", size),
                               [size] {
                                   T* one = sized<T>();
                                   one->size = size;
                                   return one;
                               },
                               false});
    return made;
}

template <class T>
using Change = std::pair<const char*, void (*)(T&)>;

// Options: NULL means the defaults. A size that cannot be one is a structure that nobody has initialised.
template <class T>
Parameter<const T*> options(std::vector<Change<T>> bad = {}, std::vector<Change<T>> odd = {}) {
    Parameter<const T*> made{"options", sized<T>, {null<const T*>(false)}};
    for (const std::size_t size : {std::size_t{0}, std::size_t{7}, SIZE_MAX, std::size_t{1} << 40})
        made.others.push_back({fmt::format("of size {}", size),
                               [size] {
                                   T* one = sized<T>();
                                   one->size = size;
                                   return one;
                               },
                               true});
    const auto add = [&](const std::vector<Change<T>>& changes, bool refused) {
        for (const auto& [what, change] : changes)
            made.others.push_back({what,
                                   [change = change] {
                                       T* one = sized<T>();
                                       change(*one);
                                       return one;
                                   },
                                   refused});
    };
    add(bad, true);
    add(odd, false);
    return made;
}

using ChangeOptions = libsieve_change_options;
Parameter<const ChangeOptions*> change_options() {
    return options<ChangeOptions>({
        {"two places", [](ChangeOptions& o) { o.first = o.last = true; }},
        {"empty action", [](ChangeOptions& o) { o.action = ""; }},
        {"unknown action", [](ChangeOptions& o) { o.action = "explode"; }},
        {"no target", [](ChangeOptions& o) { o.action = "redirect="; }},
        {"long probation", [](ChangeOptions& o) { o.probation = UINT32_MAX; }},
    });
}

libsieve_keys* keys_of(std::uint32_t fields) {
    libsieve_keys* keys = nullptr;
    (void)libsieve_keys_new(fields, &keys, nullptr);
    return keys;
}
libsieve_keys* some_keys() {
    libsieve_keys* keys = keys_of(SIEVE_FIELD_SRC);
    (void)libsieve_keys_add_text(keys, "192.0.2.1", nullptr);
    return keys;
}
Parameter<libsieve_keys*> keys() {
    return {"keys", some_keys, {null<libsieve_keys*>()}};
}
Parameter<const libsieve_keys*> const_keys() {
    return {"keys", some_keys, {null<const libsieve_keys*>()}};
}

libsieve_image* some_image() {
    libsieve_image* image = nullptr;
    (void)libsieve_build(some_keys(), nullptr, &image, nullptr);
    return image;
}

libsieve_plan* some_plan() {
    libsieve_plan* plan = nullptr;
    (void)libsieve_plan_new(1000, 0, 0, &plan, nullptr);
    return plan;
}

libsieve_table* some_table() {
    libsieve_table* table = nullptr;
    (void)libsieve_table_new(no_interface, nullptr, &table, nullptr);
    return table;
}
Parameter<libsieve_table*> table() {
    return {"table", some_table, {null<libsieve_table*>()}};
}

Parameter<const sieve_key*> key() {
    return {"key",
            [] { return std::make_unique<sieve_key>().release(); },
            {null<const sieve_key*>(),
             {"of ones",
              [] {
                  sieve_key all{};
                  for (auto& word : all.word) word = ~0ULL;
                  return std::make_unique<sieve_key>(all).release();
              },
              false}}};
}

template <class T>
Parameter<T> object_or_null(const char* name) {
    return {name, [] { return T{nullptr}; }, {}};
}

enum Answer : int { fine, was_not_refused, has_no_error, does_not_name };

std::string name_of(int status) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "hangs";
    if (WIFSIGNALED(status)) return fmt::format("crashes: {}", ::strsignal(WTERMSIG(status)));
    switch (WEXITSTATUS(status)) {
    case fine:
        return "";
    case was_not_refused:
        return "was not refused";
    case has_no_error:
        return "has no error of kind INVALID or BAD_INPUT";
    case does_not_name:
        return "has an error that names neither function nor argument";
    }
    return fmt::format("ends with {}", WEXITSTATUS(status));
}

class Interface : public testing::Test {
  protected:
    // Calls the function once for each other value of each parameter, while all others fit.
    template <class R, class... P>
    void check(const char* function, R (*call)(P...), std::type_identity_t<Parameter<P>>... parameters) {
        checked.insert(function);
        std::tuple<Parameter<P>...> all{std::move(parameters)...};
        vary(function, call, all, std::index_sequence_for<P...>());
    }
    std::set<std::string> checked;
    int calls = 0;

  private:
    template <class R, class... P, std::size_t... I>
    void vary([[maybe_unused]] const char* function, [[maybe_unused]] R (*call)(P...),
              [[maybe_unused]] const std::tuple<Parameter<P>...>& all, std::index_sequence<I...>) {
        (vary_one<I>(function, call, all), ...);
    }

    template <std::size_t Varied, class R, class... P>
    void vary_one(const char* function, R (*call)(P...), const std::tuple<Parameter<P>...>& all) {
        for (const auto& value : std::get<Varied>(all).others) {
            const std::string& parameter = std::get<Varied>(all).name;
            const auto run = [&] {
                std::tuple<P...> arguments =
                    std::apply([](const auto&... one) { return std::tuple<P...>(one.good()...); }, all);
                std::get<Varied>(arguments) = value.make();
                return judge(function, parameter, value.what == "NULL", value.refused, call, arguments);
            };
            const std::string fault = name_of(in_child(run));
            EXPECT_EQ(fault, "") << function << " with " << parameter << " " << value.what;
        }
    }

    template <class R, class... P>
    static Answer judge(const std::string& function, const std::string& parameter, bool is_null, bool refused,
                        R (*call)(P...), const std::tuple<P...>& arguments) {
        if constexpr (std::is_void_v<R>) {
            std::apply(call, arguments);
            return fine;
        } else {
            const R result = std::apply(call, arguments);
            if (!refused) return fine;
            if (result != R{}) return was_not_refused;
            using Last = std::tuple_element_t<sizeof...(P) - 1, std::tuple<P...>>;
            if constexpr (std::is_same_v<Last, libsieve_error**>) {
                libsieve_error** const error = std::get<sizeof...(P) - 1>(arguments);
                const int kind = libsieve_error_kind(*error);
                if (*error == nullptr || (kind != LIBSIEVE_ERROR_INVALID && kind != LIBSIEVE_ERROR_BAD_INPUT))
                    return has_no_error;
                const std::string said = libsieve_error_message(*error);
                if (is_null && (said.find(function) == std::string::npos ||
                                said.find("`" + parameter + "`") == std::string::npos))
                    return does_not_name;
            }
            return fine;
        }
    }

    int in_child(const std::function<Answer()>& run) {
        calls++;
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(longest_call);
            ::_exit(run());
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return status;
    }
};

Parameter<libsieve_error**> error() {
    return out<libsieve_error*>("error", true);
}

#define CHECK(function, ...) check(#function, &function __VA_OPT__(, ) __VA_ARGS__)

TEST_F(Interface, BadArgumentsAreErrorsAndNoCrashes) {
    const sieve::test::Files files;
    const std::string feed = files.feed("feed", {"192.0.2.1"});
    const std::string nothing = files.path("nothing");
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    const auto feed_path = [&] { return text("path", feed, {"", "/nonexistent/list.txt", "/"}); };

    // The first plan takes a second. The children have what it left behind.
    libsieve_plan* const plan_of_parent = some_plan();
    ASSERT_NE(plan_of_parent, nullptr);

    CHECK(libsieve_version);
    CHECK(libsieve_error_kind, object_or_null<const libsieve_error*>("error"));
    CHECK(libsieve_error_message, object_or_null<const libsieve_error*>("error"));
    CHECK(libsieve_error_free, object_or_null<libsieve_error*>("error"));

    CHECK(libsieve_parse_fields, text("text", "src", {"", ",", "src,", "ttl"}), out<std::uint32_t>("fields"),
          error());
    CHECK(libsieve_parse_key, text("text", "192.0.2.1", {"", "192.0.2", "192.0.2.1 80", "\xff\xfe"}),
          number<std::uint32_t>("fields", SIEVE_FIELD_SRC, {0, 64, UINT32_MAX}), out<sieve_key>("key"),
          error());
    CHECK(libsieve_keys_new, number<std::uint32_t>("fields", SIEVE_FIELD_SRC, {0, 64, UINT32_MAX}),
          out<libsieve_keys*>("keys"), error());
    CHECK(libsieve_keys_add, keys(), key(), error());
    CHECK(libsieve_keys_add_text, keys(), text("text", "192.0.2.1", {"", "x", "192.0.2.1/33", "::/129"}),
          error());
    CHECK(libsieve_keys_add_feed, keys(), feed_path(), error());
    CHECK(libsieve_keys_count, const_keys());
    CHECK(libsieve_keys_free, object_or_null<libsieve_keys*>("keys"));

    const Parameter<const libsieve_image*> image{"image", some_image, {null<const libsieve_image*>()}};
    CHECK(libsieve_image_open, text("path", feed, {"", "/nonexistent", feed.c_str()}),
          out<libsieve_image*>("image"), error());
    CHECK(libsieve_image_save, {"image", some_image, {null<libsieve_image*>()}},
          text("path", nothing, {"", "/nonexistent/set.sieve", "/", feed.c_str()}), error());
    CHECK(libsieve_image_describe, image, room<libsieve_image_info>("info"));
    CHECK(libsieve_image_contains, image, key());
    CHECK(libsieve_image_lines, image, out<std::uint32_t>("lines"));
    CHECK(libsieve_image_free, object_or_null<libsieve_image*>("image"));

    using Build = libsieve_build_options;
    CHECK(libsieve_build, keys(),
          options<Build>(
              {
                  {"no kind", [](Build& o) { o.kind = ""; }},
                  {"unknown kind", [](Build& o) { o.kind = "quotient"; }},
                  {"negative bits", [](Build& o) { o.bits_per_key = -1; }},
                  {"bits NaN", [](Build& o) { o.bits_per_key = std::nan(""); }},
                  {"bits infinite", [](Build& o) { o.bits_per_key = HUGE_VAL; }},
                  {"bits 1e300", [](Build& o) { o.bits_per_key = 1e300; }},
                  {"negative rate", [](Build& o) { o.fpr = -1; }},
                  {"rate NaN", [](Build& o) { o.fpr = std::nan(""); }},
                  {"rate 2", [](Build& o) { o.fpr = 2; }},
                  {"1 byte", [](Build& o) { o.memory = 1; }},
                  {"two sizes", [](Build& o) { o.bits_per_key = 16, o.fpr = 0.01; }},
                  {"unknown effort", [](Build& o) { o.effort = "none"; }},
                  {"many choices", [](Build& o) { o.choices = UINT32_MAX; }},
                  {"many threads", [](Build& o) { o.threads = UINT32_MAX; }},
              },
              {
                  {"much memory", [](Build& o) { o.memory = UINT64_MAX; }},
                  {"long label",
                   [](Build& o) {
                       static const std::string label(100'000, 'x');
                       o.label = label.c_str();
                   }},
                  {"label of other bytes", [](Build& o) { o.label = "\xff\n\x01"; }},
              }),
          out<libsieve_image*>("image"), error());

    const Parameter<const libsieve_plan*> plan{
        "plan", [=] { return plan_of_parent; }, {null<const libsieve_plan*>()}};
    CHECK(libsieve_plan_new, number<std::uint64_t>("keys", 1000, {0, UINT64_MAX}),
          number<double>("fpr", 1e-3, {-1, 2, nan, infinity, -infinity}),
          number<std::uint64_t>("memory", 0, {}, {1, UINT64_MAX}), out<libsieve_plan*>("plan"), error());
    CHECK(libsieve_plan_count, plan);
    CHECK(libsieve_plan_candidate, plan, number<std::size_t>("index", 0, {1000, SIZE_MAX}),
          room<libsieve_candidate>("candidate"));
    CHECK(libsieve_plan_free, object_or_null<libsieve_plan*>("plan"));

    CHECK(libsieve_table_new, text("interface", no_interface, {""}), hook(), out<libsieve_table*>("table"),
          error());
    CHECK(libsieve_table_set_default, table(), text("action", "drop", {"", "count", "explode"}), error());
    CHECK(libsieve_table_set_unreadable, table(), text("action", "drop", {"", "count", "explode"}), error());
    CHECK(libsieve_table_set_replies, table(), text("action", "pass", {"", "count", "explode"}),
          number<std::uint64_t>("max_flows", 0, {1, 63, UINT64_MAX}, {64, 1 << 20}), error());
    CHECK(libsieve_table_keep_replies_out, table(), text("set", "bad", {"", "absent"}), error());
    CHECK(libsieve_table_add, table(), set_name(), text("path", feed),
          text_or_null("action", "drop", {"", "explode", "limit=", "limit=0", "limit=99999999999999999999"}),
          error());
    CHECK(libsieve_table_set_condition, table(), text("set", "bad", {"", "absent"}),
          text("field", "dport", {"", "src"}), text("values", "22", {"", "22-", "70000"}), error());
    CHECK(libsieve_table_allow_lockout, table(), error());
    CHECK(libsieve_table_protect_list, table(), feed_path(), error());
    CHECK(libsieve_table_set_force, table(), error());
    CHECK(libsieve_table_keep_counters, table(), error());
    CHECK(libsieve_table_set_probation, table(), number<std::uint32_t>("seconds", 60, {86401, UINT32_MAX}),
          error());
    CHECK(libsieve_table_apply, {"table", some_table, {null<const libsieve_table*>()}}, error());
    CHECK(libsieve_table_free, object_or_null<libsieve_table*>("table"));

    const auto where = [] { return text("interface", no_interface, {""}); };
    CHECK(libsieve_swap, where(), hook(), set_name(), text("path", feed), error());
    CHECK(libsieve_remove, where(), hook(), set_name(), error());
    CHECK(libsieve_edit_set, where(), hook(), set_name(), change_options(), error());
    CHECK(libsieve_add_set, where(), hook(), set_name(), text("path", feed), change_options(), error());
    CHECK(libsieve_swap_set, where(), hook(), set_name(), text("path", feed), options<ChangeOptions>(),
          error());
    CHECK(libsieve_remove_set, where(), hook(), set_name(), options<ChangeOptions>(), error());
    CHECK(libsieve_edit_default, where(), hook(), text("action", "drop", {"", "count"}),
          options<ChangeOptions>(), error());
    CHECK(libsieve_edit_replies, where(), hook(), text("action", "drop", {"", "count"}),
          number<std::uint64_t>("max_flows", 0, {1, UINT64_MAX}), options<ChangeOptions>(), error());
    CHECK(libsieve_confirm, where(), hook(), number<bool>("keep", true, {}), error());
    CHECK(libsieve_unload, where(), hook(), error());

    using Insert = libsieve_insert_options;
    CHECK(libsieve_insert, where(), hook(), set_name(), const_keys(),
          options<Insert>({{"long lifetime", [](Insert& o) { o.seconds = UINT64_MAX; }}}),
          room<libsieve_keys_changed>("changed", true), error());
    CHECK(libsieve_delete, where(), hook(), set_name(), const_keys(), options<ChangeOptions>(),
          room<libsieve_keys_changed>("changed", true), error());
    // Without an interface this is about all of them, which is not for a test.
    Parameter<const char*> one_interface = where();
    one_interface.others.erase(one_interface.others.begin());
    CHECK(libsieve_expire, one_interface, hook(), out<std::uint64_t>("taken_out", true), error());
    CHECK(libsieve_list, where(), hook(), set_name(), out<libsieve_key_list*>("list"), error());

    // Only a set in force has such a list.
    const auto no_list = [] { return static_cast<const libsieve_key_list*>(nullptr); };
    const Parameter<const libsieve_key_list*> list{"list", no_list, {null<const libsieve_key_list*>()}};
    CHECK(libsieve_key_list_count, list);
    CHECK(libsieve_key_list_unlisted, list);
    CHECK(libsieve_key_list_get, list, number<std::size_t>("index", 0, {}), out<libsieve_listed_key>("key"));
    CHECK(libsieve_key_list_free, object_or_null<libsieve_key_list*>("list"));

    libsieve_plan_free(plan_of_parent);

    // tests/library/library.sh finds that the library exports what the header declares.
    std::stringstream header;
    header << std::ifstream("userspace/libsieve/api/libsieve.h").rdbuf();
    const std::string declarations = header.str();
    const std::regex name(R"(LIBSIEVE_API[^;(]*\b(libsieve_\w+)\()");
    std::set<std::string> declared;
    for (std::sregex_iterator i(declarations.begin(), declarations.end(), name), end; i != end; ++i)
        declared.insert((*i)[1]);
    EXPECT_GT(declared.size(), 40U);
    EXPECT_EQ(checked, declared) << "each function of the interface is checked above";
    RecordProperty("calls", calls);
}

} // namespace
