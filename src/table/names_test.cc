// Names of table files, both ways.
#include "table/names.h"

#include <set>

#include <gtest/gtest.h>

#include "format/table.pb.h"

namespace glaive::table {
namespace {

TEST(Names, ManifestPaths) {
  EXPECT_EQ(ManifestPath(1, NamingScheme::kV2),
            "_versions/18446744073709551614.manifest");
  EXPECT_EQ(ManifestPath(12, NamingScheme::kV1), "_versions/12.manifest");
  // A set top bit marks a detached version, whose number is not inverted.
  EXPECT_EQ(ManifestPath(~uint64_t{0} - 7, NamingScheme::kV2),
            "_versions/d18446744073709551608.manifest");
  // Always 20 digits.
  EXPECT_EQ(ManifestPath((uint64_t{1} << 63) - 1, NamingScheme::kV2),
            "_versions/09223372036854775808.manifest");
}

TEST(Names, ParsesWhatItMakes) {
  for (uint64_t version : {uint64_t{1}, uint64_t{2}, uint64_t{99}, uint64_t{1} << 40}) {
    for (NamingScheme scheme : {NamingScheme::kV1, NamingScheme::kV2}) {
      const std::string path = ManifestPath(version, scheme);
      auto parsed = ParseManifestName(path.substr(std::string("_versions/").size()));
      ASSERT_TRUE(parsed) << path;
      EXPECT_EQ(parsed->version, version);
      EXPECT_EQ(parsed->scheme, scheme);
      EXPECT_FALSE(parsed->detached);
    }
  }
}

TEST(Names, IgnoresForeignFiles) {
  for (const char* name :
       {"abc.manifest", "latest_version_hint.json", ".manifest", "", "manifest",
        "18446744073709551614.manifest-0af", "-1.manifest", "1.5.manifest", "d.manifest",
        "99999999999999999999.manifest", ".tmp18446744073709551614.manifest"}) {
    EXPECT_FALSE(ParseManifestName(name)) << name;
  }
  auto detached = ParseManifestName("d9223372036854775809.manifest");
  ASSERT_TRUE(detached);
  EXPECT_TRUE(detached->detached);
  EXPECT_EQ(detached->version, 9223372036854775809u);
}

TEST(Names, DataFileNames) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string name = NewDataFileName();
    ASSERT_EQ(name.size(), 56u);
    EXPECT_EQ(name.substr(0, 24).find_first_not_of("01"), std::string::npos) << name;
    EXPECT_EQ(name.substr(24, 26).find_first_not_of("0123456789abcdef"),
              std::string::npos);
    EXPECT_EQ(name.substr(50), ".lance");
    EXPECT_TRUE(seen.insert(name).second);
  }
}

TEST(Names, Uuids) {
  EXPECT_EQ(FormatUuid(std::string(
                "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16)),
            "00112233-4455-6677-8899-aabbccddeeff");
  const std::string uuid = NewUuid();
  ASSERT_EQ(uuid.size(), 36u);
  EXPECT_EQ(uuid[14], '4');
  EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos);
}

TEST(Names, DeletionFiles) {
  lance::table::DeletionFile file;
  file.set_read_version(3);
  file.set_id(~uint64_t{0});
  EXPECT_EQ(DeletionFilePath(7, file), "_deletions/7-3-18446744073709551615.arrow");
  file.set_file_type(lance::table::DeletionFile::BITMAP);
  EXPECT_EQ(DeletionFilePath(7, file), "_deletions/7-3-18446744073709551615.bin");
}

}  // namespace
}  // namespace glaive::table
