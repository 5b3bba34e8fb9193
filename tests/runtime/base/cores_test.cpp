// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Control groups as files in a folder of the test's own.
class CpuQuota : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = fs::temp_directory_path() / "lockstep-test-XXXXXX";
    mount_ = mkdtemp(path.data());
  }
  void TearDown() override { fs::remove_all(mount_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((mount_ / file).parent_path());
    std::ofstream(mount_ / file) << text;
  }

  fs::path mount_;
};

TEST_F(CpuQuota, IsInfiniteWhereNobodyLimits) {
  EXPECT_TRUE(std::isinf(cpu_quota("", mount_)));
  EXPECT_TRUE(std::isinf(cpu_quota("0::/a\n4:cpu,cpuacct:/b\nnonsense\n", mount_)));
  write("a/cpu.max", "max 100000\n");
  write("cpu,cpuacct/b/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/b/cpu.cfs_period_us", "100000\n");
  EXPECT_TRUE(std::isinf(cpu_quota("0::/a\n4:cpu,cpuacct:/b\n", mount_)));
}

TEST_F(CpuQuota, OfVersion2IsTheLeastOfAGroupAndThoseAroundIt) {
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota("0::/a/b\n", mount_), 1.5);
}

TEST_F(CpuQuota, OfAContainerThatSeesItsOwnGroupAsTheMount) {
  write("cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota("0::/docker/5f3a\n", mount_), 2.0);
}

TEST_F(CpuQuota, OfVersion1IsQuotaByPeriod) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "20000\n");
  EXPECT_DOUBLE_EQ(cpu_quota("7:cpuset:/other\n4:cpu,cpuacct:/job\n", mount_), 2.5);
  write("cpu/job/cpu.cfs_quota_us", "10000\n");
  write("cpu/job/cpu.cfs_period_us", "20000\n");
  EXPECT_DOUBLE_EQ(cpu_quota("1:cpu:/job\n", mount_), 0.5);
}

TEST(UsableCores, AreThoseThatTheProcessMayRunOn) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&all));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

}  // namespace
}  // namespace lockstep
