// A newest manifest that a power cut tore is passed over, never overwritten.
#include <cstring>
#include <numeric>

#include "format/table.pb.h"
#include "io/store_hook.h"
#include "table/names.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

Values Range(int64_t from, int64_t to) {
  Values values(static_cast<size_t>(to - from));
  std::iota(values.begin(), values.end(), from);
  return values;
}

std::string Half(const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); }
std::string Zeros(const std::string& bytes) { return std::string(bytes.size(), '\0'); }
std::string Nothing(const std::string&) { return ""; }

struct Damage {
  const char* name;
  std::string (*of)(const std::string&);
};

class TornManifestTest : public ::testing::TestWithParam<Damage> {
 protected:
  // Version 1 has rows 0..9, version 2 rows 0..19, version 3 rows 0..29.
  void SetUp() override {
    const TableEnv env = MakeEnv(store_);
    ASSERT_OK(Create(env, Range(0, 10)).status());
    ASSERT_OK(Append(env, Range(10, 20)).status());
    ASSERT_OK(Append(env, Range(20, 30)).status());
  }

  std::string BytesOf(uint64_t version) {
    return io::Text(store_->Get(ManifestPath(version, NamingScheme::kV2)).ValueOrDie());
  }
  void Replace(uint64_t version, const std::string& bytes) {
    const std::string path = ManifestPath(version, NamingScheme::kV2);
    ASSERT_OK(store_->Put(path, io::Bytes(bytes), /*durable=*/false));
  }
  void Tear(uint64_t version) { Replace(version, GetParam().of(BytesOf(version))); }

  std::shared_ptr<io::ObjectStore> store_ = io::MakeMemoryStore()->Child("t.lance");
};

INSTANTIATE_TEST_SUITE_P(Damages, TornManifestTest,
                         ::testing::Values(Damage{"half", Half}, Damage{"zeros", Zeros},
                                           Damage{"nothing", Nothing}),
                         [](const auto& p) { return p.param.name; });

TEST_P(TornManifestTest, NewestWholeVersionIsShownAndTheNextCommitGoesAbove) {
  Tear(3);
  const std::string torn = BytesOf(3);
  const TableEnv env = MakeEnv(store_);
  ASSERT_OK_AND_ASSIGN(auto opened, Dataset::Open(env));
  EXPECT_EQ(opened->version(), 2);
  ASSERT_EQ(opened->warnings().size(), 1u);
  EXPECT_NE(opened->warnings()[0].find(ManifestPath(3, NamingScheme::kV2)),
            std::string::npos);
  EXPECT_EQ(ReadValues(*opened).ValueOrDie(), Range(0, 20));
  EXPECT_EQ(opened->Latest().ValueOrDie(), opened);  // and is remembered
  EXPECT_KIND(ErrorKind::kCorruption, opened->Checkout(3).status());

  ASSERT_OK_AND_ASSIGN(auto appended, Append(env, Range(100, 105)));
  EXPECT_EQ(appended->version(), 4);
  EXPECT_TRUE(appended->warnings().empty());
  EXPECT_EQ(BytesOf(3), torn);
  Values rows = Range(0, 20);
  for (int64_t value : Range(100, 105)) rows.push_back(value);
  ASSERT_OK_AND_ASSIGN(auto reopened, Dataset::Open(MakeEnv(store_)));
  EXPECT_EQ(reopened->version(), 4);
  EXPECT_TRUE(reopened->warnings().empty());
  EXPECT_EQ(ReadValues(*reopened).ValueOrDie(), rows);

  ASSERT_OK_AND_ASSIGN(auto versions, reopened->ListVersions());
  std::vector<int64_t> numbers;
  for (const auto& info : versions) numbers.push_back(info.version);
  EXPECT_EQ(numbers, (std::vector<int64_t>{1, 2, 4}));
}

TEST_P(TornManifestTest, HandlesFromBeforeGoOn) {
  const TableEnv env = MakeEnv(store_);
  ASSERT_OK_AND_ASSIGN(auto second, Dataset::Open(env, 2));
  ASSERT_OK_AND_ASSIGN(auto third, Dataset::Open(env));
  Tear(3);
  ASSERT_OK_AND_ASSIGN(auto latest, third->Latest());
  EXPECT_EQ(latest->version(), 2);
  EXPECT_EQ(latest->warnings().size(), 1u);
  // Made on version 2; version 3, torn, took nothing away from it.
  const TableEnv other = MakeEnv(store_);
  ASSERT_OK(Append(other, Range(100, 105)).status());
  ASSERT_OK_AND_ASSIGN(auto deleted, DeleteValues(*second, Range(0, 15)));
  EXPECT_EQ(deleted->version(), 5);
  Values rows = Range(15, 20);
  for (int64_t value : Range(100, 105)) rows.push_back(value);
  EXPECT_EQ(ReadValues(*deleted).ValueOrDie(), rows);
}

TEST_P(TornManifestTest, SeveralInARow) {
  Tear(3);
  Tear(2);
  const TableEnv env = MakeEnv(store_);
  ASSERT_OK_AND_ASSIGN(auto opened, Dataset::Open(env));
  EXPECT_EQ(opened->version(), 1);
  EXPECT_EQ(opened->warnings().size(), 2u);
  ASSERT_OK_AND_ASSIGN(auto appended, Append(env, Range(50, 51)));
  EXPECT_EQ(appended->version(), 4);
  Tear(1);
  Tear(4);
  EXPECT_KIND(ErrorKind::kCorruption, Dataset::Open(MakeEnv(store_)).status());
}

TEST_P(TornManifestTest, ARepairedManifestIsSeen) {
  const std::string whole = BytesOf(3);
  Tear(3);
  const TableEnv env = MakeEnv(store_);
  ASSERT_OK_AND_ASSIGN(auto opened, Dataset::Open(env));
  EXPECT_EQ(opened->version(), 2);
  Replace(3, whole);
  ASSERT_OK_AND_ASSIGN(auto latest, opened->Latest());
  EXPECT_EQ(latest->version(), 3);
  EXPECT_EQ(ReadValues(*latest).ValueOrDie(), Range(0, 30));
}

class WholeManifestTest : public TornManifestTest {};
INSTANTIATE_TEST_SUITE_P(None, WholeManifestTest,
                         ::testing::Values(Damage{"none", Nothing}));

// Only what a power cut leaves is passed over: other damage would silently take back a
// version that was whole once.
TEST_P(WholeManifestTest, OtherDamageIsAnError) {
  const std::string whole = BytesOf(3);
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Replace(3, damaged);
    auto opened = Dataset::Open(MakeEnv(store_));
    if (opened.ok()) {
      EXPECT_EQ((*opened)->version(), 3) << "byte " << at;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 20);
}

TEST_P(WholeManifestTest, NewerFlagsAreRefused) {
  const TableEnv env = MakeEnv(store_);
  std::string bytes = BytesOf(3);
  ASSERT_OK_AND_ASSIGN(auto opened, Dataset::Open(env));
  // The last bytes of the message, before the footer: an unknown reader flag appended as
  // a field, the message length raised.
  lance::table::Manifest flag;
  flag.set_reader_feature_flags(uint64_t{1} << 40);
  const std::string field = flag.SerializeAsString();
  uint64_t position = 0;
  std::memcpy(&position, bytes.data() + bytes.size() - 16, sizeof(position));
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + position, sizeof(length));
  length += static_cast<uint32_t>(field.size());
  std::memcpy(bytes.data() + position, &length, sizeof(length));
  bytes.insert(bytes.size() - 16, field);
  Replace(3, bytes);
  EXPECT_KIND(ErrorKind::kNotSupported, Dataset::Open(MakeEnv(store_)).status());
}

// Fails to read manifests.
class ManifestsUnreadable : public io::StoreHook {
 public:
  io::HookVerdict Before(io::StoreOp op, std::string_view path) override {
    if (op != io::StoreOp::kGet || !path.ends_with(".manifest")) return {};
    return {Status::IOError("the disk gave up"), io::FaultEffect::kNotDone};
  }
};

TEST_P(WholeManifestTest, AnUnreadableManifestIsAnError) {
  Tear(3);
  auto store = io::MakeHookedStore(store_, std::make_shared<ManifestsUnreadable>());
  const Status status = Dataset::Open(MakeEnv(store)).status();
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
}

}  // namespace
}  // namespace glaive::table
