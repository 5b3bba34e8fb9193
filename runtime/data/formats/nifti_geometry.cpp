// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/nifti_geometry.h"

#include <algorithm>
#include <cmath>

namespace lockstep::data {

namespace {

Affine of_rows(const std::array<float, 12>& rows) {
  Affine affine{};
  for (std::size_t i = 0; i < rows.size(); ++i) affine[i / 4][i % 4] = static_cast<double>(rows[i]);
  return affine;
}

Affine of_quaternion(const NiftiGeometry& geometry) {
  const auto b = static_cast<double>(geometry.quaternion[0]);
  const auto c = static_cast<double>(geometry.quaternion[1]);
  const auto d = static_cast<double>(geometry.quaternion[2]);
  const double a = std::sqrt(std::max(0.0, 1 - b * b - c * c - d * d));
  const double rotation[3][3] = {{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
                                 {2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
                                 {2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - c * c - b * b}};
  const double mirrored = geometry.pixdim[0] < 0 ? -1 : 1;  // qfac; 0 stands for 1
  Affine affine{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      affine[i][j] = rotation[i][j] * static_cast<double>(geometry.pixdim[j + 1]) * (j == 2 ? mirrored : 1);
    }
    affine[i][3] = static_cast<double>(geometry.offset[i]);
  }
  return affine;
}

Affine around_the_middle(const NiftiGeometry& geometry, const Shape& volume) {
  Affine affine{};
  for (std::size_t i = 0; i < 3; ++i) {
    affine[i][i] = static_cast<double>(geometry.pixdim[i + 1]) * (i == 0 ? -1 : 1);
    affine[i][3] = -static_cast<double>(volume[2 - static_cast<int>(i)] - 1) / 2 * affine[i][i];
  }
  return affine;
}

}  // namespace

Affine affine_of(const NiftiGeometry& geometry, const Shape& volume) {
  if (geometry.sform > 0) return of_rows(geometry.rows);
  return geometry.qform > 0 ? of_quaternion(geometry) : around_the_middle(geometry, volume);
}

}  // namespace lockstep::data
