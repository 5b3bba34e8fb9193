// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/registered.h"

#include <gmock/gmock.h>

#include <memory>

namespace lockstep {
namespace {

using testing::HasSubstr;
using Numbers = Registry<std::unique_ptr<double>, double>;

Numbers numbers() {
  Numbers registry("number");
  registry.add("scaled", [](double x, const Settings& settings) {
    return std::make_unique<double>(x * settings.number("factor", 2));
  });
  registry.add("none", [](double, const Settings&) { return nullptr; });
  registry.add("broken", [](double x, const Settings&) {
    return std::make_unique<double>(std::vector<double>().at(static_cast<std::size_t>(x)));
  });
  return registry;
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Registry, MakesByNameWithTheOptionsOfTheCall) {
  const Numbers registry = numbers();
  EXPECT_EQ(*registry.make({.name = "scaled"}, 3), 6);
  EXPECT_EQ(*registry.make({.name = "scaled", .options = {{"factor", "0.5"}}}, 3), 1.5);
}

TEST(Registry, RefusesWhatItCannotMake) {
  Numbers registry = numbers();
  const auto make = [&registry](const RegisteredOptions& call) { return error_of([&] { registry.make(call, 1); }); };
  EXPECT_THAT(make({.name = "scale"}),
              HasSubstr("no number \"scale\" is registered in this program, lockstep; it has broken, none, scaled"));
  EXPECT_THAT(make({.name = "none"}), HasSubstr("the function of \"none\" gave no number"));
  EXPECT_THAT(make({.name = "broken"}), HasSubstr("the function of \"broken\" made no number: vector::"));
  EXPECT_THAT(make({.name = "scaled", .options = {{"fator", "1"}}}),
              HasSubstr("there is no option \"fator\"; it has factor"));
  EXPECT_THAT(make({.name = "none", .options = {{"factor", "1"}}}),
              HasSubstr("there is no option \"factor\": it has none"));
  EXPECT_THAT(error_of([&] { registry.add("none", nullptr); }), HasSubstr("needs a name and a function"));
  const auto other = [](double, const Settings&) { return nullptr; };
  EXPECT_THAT(error_of([&] { registry.add("none", other); }), HasSubstr("the number \"none\" is registered already"));
  EXPECT_THAT(error_of([&] { registry.add("", other); }), HasSubstr("needs a name and a function"));
}

TEST(Settings, ReadTextsAsWhatTheyAreAskedFor) {
  const Settings settings({{"width", "64"}, {"rate", "1e-3"}, {"bias", "false"}, {"kind", "wide"}});
  EXPECT_EQ(settings.integer("width"), 64);
  EXPECT_EQ(settings.number("rate"), 1e-3);
  EXPECT_FALSE(settings.flag("bias", true));
  EXPECT_EQ(settings.text("kind"), "wide");
  EXPECT_EQ(settings.integer("depth", 2), 2);
  EXPECT_EQ(settings.text("name", "first"), "first");
  EXPECT_NO_THROW(settings.require_all_read());
}

TEST(Settings, RefuseWhatIsNoSuchValue) {
  const Settings settings(
      {{"width", "64.5"}, {"rate", "fast"}, {"rest", "1 "}, {"bias", "yes"}, {"big", "99999999999999999999"}});
  EXPECT_THAT(error_of([&] { settings.integer("width"); }), HasSubstr("\"width\" must be a whole number, is \"64.5\""));
  EXPECT_THAT(error_of([&] { settings.number("rate"); }), HasSubstr("\"rate\" must be a number, is \"fast\""));
  EXPECT_THAT(error_of([&] { settings.number("rest"); }), HasSubstr("\"rest\" must be a number, is \"1 \""));
  EXPECT_THAT(error_of([&] { settings.flag("bias"); }), HasSubstr("\"bias\" must be true or false, is \"yes\""));
  EXPECT_THAT(error_of([&] { settings.integer("big"); }), HasSubstr("must be a whole number"));
  EXPECT_THAT(error_of([&] { settings.text("absent"); }), HasSubstr("\"absent\" has to be given"));
}

TEST(RegisteredOptions, AreNamedOnceEach) {
  const RegisteredOptions twice{.name = "scaled", .options = {{"factor", "1"}, {"factor", "2"}}};
  ASSERT_EQ(problems_of(twice).size(), 1u);
  EXPECT_EQ(problems_of(twice)[0].field, "options[1].name");
  EXPECT_EQ(problems_of({.name = "", .options = {{"factor", ""}}}).size(), 2u);
  EXPECT_TRUE(problems_of({.name = "scaled", .options = {{"factor", "1"}}}).empty());
}

}  // namespace
}  // namespace lockstep
