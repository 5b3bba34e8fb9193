// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::data {

/// Whether the ending, ".jpg", is that of images that are read: .jpg, .jpeg, .png and .webp, in any case.
bool is_image_extension(std::string extension);

/// Images of a folder or archive that no sample is made of, by the reason: for a person to know of.
class PassedOver {
 public:
  /// A file below an image folder, or a member of an archive, that is no sample. Counts it where it is named as an
  /// image of a format that is not read, such as .gif, .bmp or .tiff; other files are not meant to be images.
  void add_file(const std::string& name);
  /// A link that leads to no file and no folder.
  void add_broken_link(const std::string& name);
  /// An image that lies beside the classes' folders.
  void add_outside_classes(const std::string& name);

  bool empty() const { return formats_.empty() && broken_links_.count == 0 && outside_.count == 0; }
  /// A sentence for each reason: "3 images of formats that are not read are left out: 2 .gif, 1 .tiff (the first:
  /// cat/a.gif)". None where nothing was passed over.
  std::vector<std::string> remarks() const;

 private:
  struct Files {
    std::int64_t count = 0;
    std::string first;

    void add(const std::string& name);
  };

  std::map<std::string, Files> formats_;  ///< by ending
  Files broken_links_;
  Files outside_;
};

/// Whether the entry is a link to what is not there.
bool leads_nowhere(const std::filesystem::directory_entry& entry);

/// What is passed over of all that lies below the folder, links not followed.
PassedOver passed_over_below(const std::filesystem::path& folder);

}  // namespace lockstep::data
