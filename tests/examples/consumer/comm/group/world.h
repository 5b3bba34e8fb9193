// SPDX-License-Identifier: Apache-2.0
// A consumer's own header, which has the path of one of Lockstep's.
#pragma once

constexpr int kOwnWorld = 8;
