// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/init/files.h"
#include "runtime/init/find_data.h"

namespace lockstep::init {

// find_data() calls these: each finds one kind of data.

/// Images in folders of their classes, or those within folders named train or training and val, test or another name
/// for evaluation, in any case and among other words: training_set. A folder that holds nothing but one with those
/// stands for it. The samples' size follows from those of the images: at most 224. None where the folder has no such
/// folders. Throws UsageError for images of one class, without a folder of their class, or for evaluation alone.
std::optional<FoundData> find_images(const std::filesystem::path& folder);

/// A folder of images and one of their masks, PNG files of the same names but for the ending; named and split as those
/// of find_volumes(). The classes are counted; masks of 0 and 255 alone show one thing. None where there are no such
/// folders. Throws StorageError for files that cannot be read.
std::optional<FoundData> find_image_masks(const std::filesystem::path& folder);

/// A folder of volumes and one of their masks, which has names such as masks, labels or labelsTr; also within train/
/// and val/, or with these in both. None where there are no such folders. Volumes of differing or large extents get a
/// patch. Throws StorageError for files that cannot be read.
std::optional<FoundData> find_volumes(const std::filesystem::path& folder);

/// Pairs of .npy files: targets are called y, target, label or mask, or are the second of two. Whole numbers are
/// classes, but for 0 and 1 a position, which are a mask. Throws UsageError where a split has not two files.
FoundData find_arrays(const Split& files);

/// Tables: the delimiter that the first line has most of; a header where that line has a cell of words above a column
/// of numbers; features are the columns of numbers. The target, the last column where none is named, is a class where
/// it is words or few whole numbers, else a number. Looks at the first rows. Where tables differ in their columns,
/// those that are like the one named train are taken. Throws UsageError where none is named so, and for a table without
/// a column of numbers beside the target.
FoundData find_table(const Split& files, const std::string& target);

/// Images and labels in tar files. Names that count on are written as one pattern, "train-{000..146}.tar". Throws
/// StorageError for a file whose first members cannot be read.
FoundData find_shards(const Split& files);

/// Whether the file's name ends as those of a kind of data set with kEndings do (runtime/data/dataset_kind.h).
bool has_known_ending(const std::filesystem::path& path);
/// "*.svm (sparse rows), also gzipped; ", for each of these kinds.
std::string known_endings();
/// Files of such a kind. Throws UsageError where they are of two, and StorageError for what cannot be read.
FoundData find_by_ending(const Split& files);

/// How the files of find_text() hold tokens.
struct TextKind {
  bool tokens = false;              ///< the files are numbers of 2 bytes
  std::string vocab_file = {};      ///< of a text that byte pairs encode; empty: a token a byte
  std::string merges_file = {};     ///< beside it
  std::string tokenizer_file = {};  ///< in place of these two
};

/// Texts or tokens. Without files to evaluate on, the last tenth of the text serves. The context that is asked for is
/// halved until the training data and the evaluation data each hold two contexts of tokens. Throws UsageError for a
/// text that is too short for the least context.
FoundData find_text(const Split& files, const TextKind& kind, const FindOptions& asked);

}  // namespace lockstep::init
