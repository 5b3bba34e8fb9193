// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

constexpr const char* kFiles[] = {"manifest.json", "state.pb", "tensors.safetensors"};

class Damage : public testing::Test {
 protected:
  Damage() {
    save(path_, 100);
    save(path_, 200);
  }

  std::string file(const std::string& name) const { return path_ + "/step-00000200/" + name; }

  /// That the damage to step 200 is seen, named, and that step 100 is taken.
  void expect_fallback(const std::string& name) const {
    const std::optional<Checkpoint> latest = store_in(path_).latest();
    ASSERT_TRUE(latest.has_value());
    ASSERT_EQ(latest->state.step(), 100u);
    ASSERT_EQ(latest->notices.size(), 1u);
    EXPECT_NE(latest->notices[0].find(name), std::string::npos) << latest->notices[0];
    EXPECT_TRUE(latest->notices[0].ends_with("step-00000100 is taken instead")) << latest->notices[0];
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_ / "checkpoints";
};

TEST_F(Damage, OfAnySingleBitIsDetected) {
  for (const char* name : kFiles) {
    const std::string intact = slurp(file(name));
    for (std::size_t byte = 0; byte < intact.size(); ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = intact;
        damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
        spill(file(name), damaged);
        SCOPED_TRACE(std::string(name) + ", byte " + std::to_string(byte) + ", bit " + std::to_string(bit));
        ASSERT_THROW(verify_checkpoint(path_ + "/step-00000200"), StorageError);
        if (bit == static_cast<int>(byte % 8)) expect_fallback(name);
        if (HasFailure()) return;
      }
    }
    spill(file(name), intact);
  }
}

TEST_F(Damage, OfAnyTruncationIsDetected) {
  for (const char* name : kFiles) {
    const std::string intact = slurp(file(name));
    for (std::size_t size = 0; size < intact.size(); ++size) {
      SCOPED_TRACE(std::string(name) + " of " + std::to_string(size) + " bytes");
      spill(file(name), intact.substr(0, size));
      expect_fallback(name);
      if (HasFailure()) return;
    }
    spill(file(name), intact + "x");
    expect_fallback(name);
    fs::remove(file(name));
    expect_fallback(name);
    spill(file(name), intact);
  }
}

TEST_F(Damage, OfATensorNamesTheTensor) {
  const std::string name = file("tensors.safetensors");
  flip_bit(name, fs::file_size(name) - 1, 1);
  EXPECT_NE(store_in(path_).scan()[0].damage.find("tensor 'mask'"), std::string::npos);
}

TEST_F(Damage, ByTruncationSaysHowMuchIsThere) {
  fs::resize_file(file("state.pb"), 3);
  const std::string all = std::to_string(slurp(path_ + "/step-00000100/state.pb").size());
  EXPECT_NE(store_in(path_).scan()[0].damage.find("state.pb is truncated at 3 of "), std::string::npos);
}

TEST_F(Damage, IsListedByScanBesideWhatIsWhole) {
  flip_bit(file("state.pb"), 2, 0);
  const std::vector<ScanEntry> entries = store_in(path_).scan();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].step, 200u);
  EXPECT_NE(entries[0].damage, "");
  EXPECT_EQ(entries[1].step, 100u);
  EXPECT_EQ(entries[1].damage, "");
}

TEST_F(Damage, OfAllCheckpointsIsAnErrorThatListsThem) {
  flip_bit(file("state.pb"), 2, 0);
  fs::remove(path_ + "/step-00000100/manifest.json");
  try {
    store_in(path_).latest();
    FAIL() << "nothing whole is left";
  } catch (const StorageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("step-00000200/state.pb"), std::string::npos) << text;
    EXPECT_NE(text.find("step-00000100 has no manifest.json"), std::string::npos) << text;
  }
}

TEST_F(Damage, ByAWrongDirectoryNameIsDetected) {
  fs::rename(path_ + "/step-00000200", path_ + "/step-00000300");
  EXPECT_EQ(store_in(path_).latest()->state.step(), 100u);
  EXPECT_EQ(store_in(path_).load(path_ + "/step-00000300").state.step(), 200u);
}

}  // namespace
}  // namespace lockstep::checkpoint
