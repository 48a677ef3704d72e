// SPDX-License-Identifier: Apache-2.0
#include "tutti/data/mnist.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "data/temporary_folder.hpp"
#include "support/errors.hpp"

namespace tutti::data {
namespace {

using tutti::testing::big_endian;
using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::gzip;
using tutti::testing::idx_header;
using tutti::testing::TemporaryFolder;

constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

// `count` images whose pixels are their position plus the image's number, and labels 0, 1, 2 ...
std::string images(std::uint32_t count) {
  std::string bytes = idx_header(8, {count, 28, 28});
  for (std::uint32_t i = 0; i < count * 784; ++i)
    bytes.push_back(static_cast<char>((i % 784 + i / 784) % 256));
  return bytes;
}
std::string labels(std::uint32_t count) {
  std::string bytes = idx_header(8, {count});
  for (std::uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i % 10));
  return bytes;
}

void write_set(const TemporaryFolder& folder, const std::string& image_bytes,
               const std::string& label_bytes) {
  folder.write("train-images-idx3-ubyte", image_bytes);
  folder.write("train-labels-idx1-ubyte", label_bytes);
}

std::string idx_error(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", bytes);
  const std::string message = error_of<DataError>([&] { read_idx(path); });
  EXPECT_TRUE(contains(message, path));
  return message;
}

TEST(Idx, EveryElementTypeIsReadInTheMachinesByteOrder) {
  const TemporaryFolder folder;
  const auto read = [&](std::uint8_t type, const std::string& elements) {
    return read_idx(folder.write("file", idx_header(type, {1, 2}) + elements));
  };
  EXPECT_EQ(read(0x08, "\x01\xFF").to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 255}));
  EXPECT_EQ(read(0x09, "\x01\xFF").to_vector<std::int8_t>(), (std::vector<std::int8_t>{1, -1}));
  EXPECT_EQ(read(0x0B, std::string("\x01\x02\xFF\xFE", 4)).to_vector<std::int16_t>(),
            (std::vector<std::int16_t>{258, -2}));
  EXPECT_EQ(read(0x0C, big_endian(7) + big_endian(0xFFFFFFFF)).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{7, -1}));
  const Tensor floats = read(0x0D, big_endian(0x3FC00000) + big_endian(0xC0000000));
  EXPECT_EQ(floats.to_vector<float>(), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_EQ(floats.sizes(), (Dims{1, 2}));
  const Tensor doubles = read(0x0E, big_endian(0x3FF80000) + big_endian(0) + big_endian(0) + big_endian(0));
  EXPECT_EQ(doubles.to_vector<double>(), (std::vector<double>{1.5, 0.0}));
}

TEST(Idx, GzipIsToldByItsContents) {
  const TemporaryFolder folder;
  const std::string bytes = images(3);
  const Tensor plain = read_idx(folder.write("plain.gz", bytes));
  const Tensor compressed = read_idx(folder.write("compressed", gzip(bytes)));
  EXPECT_EQ(compressed.to_vector<std::uint8_t>(), plain.to_vector<std::uint8_t>());
}

TEST(Idx, AnArrayMayBeEmpty) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_idx(folder.write("file", idx_header(8, {0, 28}))).sizes(), (Dims{0, 28}));
}

TEST(Idx, MissingAndIrregularFilesAreNamed) {
  EXPECT_TRUE(contains(error_of<DataError>([] { read_idx("/nowhere/x"); }),
                       "/nowhere/x: can't be opened: No such file"));
  EXPECT_TRUE(contains(error_of<DataError>([] { read_idx("/tmp"); }), "/tmp: is no regular file"));
  // Names what it is instead of waiting for a writer.
  const TemporaryFolder folder;
  const std::string fifo = folder.path() + "/train-images-idx3-ubyte";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_of<DataError>([&] { read_idx(fifo); }), fifo + ": is no regular file");
}

TEST(Idx, ABadHeaderIsNamedWithOffsetAndField) {
  EXPECT_TRUE(contains(idx_error(""), "offset 0, magic number: expected 4 bytes, got 0 before the end"));
  EXPECT_TRUE(
      contains(idx_error("PK\x08\x01"), "offset 0, magic number: expected 0 0 (an IDX file), got 80 75"));
  EXPECT_TRUE(contains(idx_error(std::string("\0\0\x07\x01", 4)),
                       "offset 2, element type: expected one of 8, 9, 11, 12, 13, 14, got 7"));
  EXPECT_TRUE(
      contains(idx_error(std::string("\0\0\x08\0", 4)), "offset 3, number of dims: expected 1 to 8, got 0"));
  EXPECT_TRUE(contains(idx_error(std::string("\0\0\x08\x09", 4)),
                       "offset 3, number of dims: expected 1 to 8, got 9"));
  EXPECT_TRUE(contains(idx_error(idx_header(8, {5, 28}).substr(0, 10)),
                       "offset 8, size of a dim: expected 4 bytes, got 2"));
  EXPECT_TRUE(contains(idx_error(idx_header(0x0E, {0xFFFFFFFF, 0xFFFFFFFF, 2})),
                       "offset 8, size of a dim: expected a product that fits 63 bits, got 4294967295"));
}

TEST(Idx, SizeAndContentsMustAgree) {
  const std::string good = images(2);
  EXPECT_TRUE(contains(idx_error(good.substr(0, good.size() - 1)),
                       "offset 16, elements: expected 1568 bytes for shape [2, 28, 28], got 1567 bytes"));
  EXPECT_TRUE(contains(idx_error(good + "x"),
                       "offset 16, elements: expected 1568 bytes for shape [2, 28, 28], got 1569"));
  EXPECT_TRUE(contains(idx_error(gzip(good.substr(0, good.size() - 8))),
                       "offset 16, elements: expected 1568 bytes, got 1560"));
  EXPECT_TRUE(contains(idx_error(gzip(good + "x")),
                       "offset 1584, end: expected the end of the contents, got more bytes"));
}

TEST(Idx, WhatAFileCantHoldIsNotAllocated) {
  const std::string header = idx_header(8, {4000000000U, 1000000});
  EXPECT_TRUE(contains(idx_error(gzip(header)), "compressed bytes, which can't hold them"));
  EXPECT_TRUE(contains(idx_error(header), "expected 4000000000000000 bytes"));
}

TEST(Idx, DamagedCompressionIsFound) {
  std::string bytes = images(40);
  for (std::size_t i = 16; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i * 31 >> 3);
  const std::string good = gzip(bytes);
  EXPECT_TRUE(contains(idx_error(good.substr(0, good.size() / 2)),
                       "expected more compressed data, got the end of the file after"));
  EXPECT_TRUE(contains(idx_error(good.substr(0, good.size() - 4)), "end: expected more compressed data"));
  EXPECT_TRUE(contains(idx_error(good + "junk"), "got 4 more bytes"));
  EXPECT_TRUE(contains(idx_error(good + good), "more bytes"));
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 6] = static_cast<char>(wrong_checksum[good.size() - 6] ^ 1);
  EXPECT_TRUE(contains(idx_error(wrong_checksum), "incorrect data check"));
  std::string flipped = good;
  flipped[12] = static_cast<char>(flipped[12] ^ 0x55);
  idx_error(flipped);
}

TEST(Mnist, PixelsAreScaledAndLabelsRead) {
  const TemporaryFolder folder;
  write_set(folder, images(12), labels(12));
  const Mnist dataset(folder.path(), Split::kTrain);
  ASSERT_EQ(dataset.size(), 12U);
  const Example example = dataset[11];
  EXPECT_EQ(example.input.sizes(), (Dims{1, 28, 28}));
  EXPECT_EQ(example.input.dtype(), DType::kFloat32);
  EXPECT_EQ(example.target.item<std::int64_t>(), 1);
  EXPECT_EQ(example.target.dim(), 0);
  const std::vector<float> pixels = example.input.to_vector<float>();
  for (std::size_t i = 0; i < pixels.size(); ++i)
    ASSERT_EQ(pixels[i], static_cast<float>((i + 11) % 256) / 255.0F) << i;
}

TEST(Mnist, PixelsCanBeNormalized) {
  const TemporaryFolder folder;
  write_set(folder, images(1), labels(1));
  const Mnist dataset(folder.path(), Split::kTrain, {.mean = 0.5F, .deviation = 0.25F});
  EXPECT_FLOAT_EQ(dataset[0].input.to_vector<float>()[255], 2.0F);
  EXPECT_FLOAT_EQ(dataset[0].input.to_vector<float>()[0], -2.0F);
  EXPECT_TRUE(
      contains(error_of<ValueError>([&] { Mnist(folder.path(), Split::kTrain, {.deviation = 0.0F}); }),
               "deviation must be finite and above 0, given 0"));
}

TEST(Mnist, FilesThatDontFitEachOtherAreRefused) {
  const auto message = [](const std::string& image_bytes, const std::string& label_bytes) {
    const TemporaryFolder folder;
    write_set(folder, image_bytes, label_bytes);
    return error_of<DataError>([&] { FashionMnist(folder.path(), Split::kTrain); });
  };
  EXPECT_TRUE(contains(
      message(images(3), labels(4)),
      "train-labels-idx1-ubyte: offset 4, size of dim 0: expected 3 labels as there are images, got 4"));
  std::string bad_label = labels(3);
  bad_label[8 + 2] = static_cast<char>(255);
  EXPECT_TRUE(contains(message(images(3), bad_label), "offset 10, label 2: expected 0 to 9, got 255"));
  EXPECT_TRUE(contains(message(labels(3), labels(3)), "expected images, uint8 [N, 28, 28], got uint8 [3]"));
  EXPECT_TRUE(contains(message(images(3), images(3)), "expected labels, uint8 [N], got uint8 [3, 28, 28]"));
  EXPECT_TRUE(contains(message(idx_header(8, {1, 28, 27}) + std::string(28 * 27, 'x'), labels(1)),
                       "got uint8 [1, 28, 27]"));
}

TEST(Mnist, AMissingFileIsNamed) {
  const TemporaryFolder folder;
  folder.write("t10k-images-idx3-ubyte", images(1));
  const std::string message = error_of<DataError>([&] { Mnist(folder.path(), Split::kTest); });
  EXPECT_TRUE(contains(message, "neither " + folder.path() + "/t10k-labels-idx1-ubyte nor "));
  EXPECT_TRUE(contains(message, "t10k-labels-idx1-ubyte.gz is there"));
}

// First labels of Fashion-MNIST's files, as its README and torchvision show them.
TEST(Mnist, FashionMnistItself) {
  ASSERT_TRUE(std::filesystem::exists(kFashionMnist))
      << kFashionMnist << " is not there: apt-get install dataset-fashion-mnist";
  const FashionMnist train(kFashionMnist, Split::kTrain);
  const FashionMnist test(kFashionMnist, Split::kTest);
  EXPECT_EQ(train.size(), 60000U);
  EXPECT_EQ(test.size(), 10000U);
  const std::vector<std::uint8_t> train_labels = train.labels().to_vector<std::uint8_t>();
  EXPECT_EQ(std::vector<int>(train_labels.begin(), train_labels.begin() + 5),
            (std::vector<int>{9, 0, 0, 3, 0}));
  const std::vector<std::uint8_t> test_labels = test.labels().to_vector<std::uint8_t>();
  EXPECT_EQ(std::vector<int>(test_labels.begin(), test_labels.begin() + 5),
            (std::vector<int>{9, 2, 1, 1, 6}));
  // Mean pixel of the training images: 0.2860, the number that is used to normalize them.
  double sum = 0;
  const std::uint8_t* pixels = train.images().data<std::uint8_t>();
  for (std::int64_t i = 0; i < train.images().numel(); ++i) sum += pixels[i];
  EXPECT_NEAR(sum / 255 / static_cast<double>(train.images().numel()), 0.2860, 5e-5);
}

}  // namespace
}  // namespace tutti::data
