// The public C++ API as a program uses it, and the rules of handles.
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <arrow/api.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "db/connection.h"
#include "db/environment.h"
#include "glaive/glaive.h"

namespace glaive {
namespace {

using arrow::field;

std::shared_ptr<arrow::Schema> BookSchema() {
  return arrow::schema({field("id", arrow::int64()), field("title", arrow::utf8()),
                        field("vector", arrow::fixed_size_list(arrow::float32(), 2))});
}

// Rows [start, end): title "book <id>", vector (id, 1).
std::shared_ptr<arrow::Table> Books(int64_t start, int64_t end) {
  arrow::Int64Builder ids;
  arrow::StringBuilder titles;
  arrow::FloatBuilder numbers;
  for (int64_t i = start; i < end; ++i) {
    EXPECT_TRUE(ids.Append(i).ok());
    EXPECT_TRUE(titles.Append("book " + std::to_string(i)).ok());
    EXPECT_TRUE(numbers.AppendValues({static_cast<float>(i), 1.0f}).ok());
  }
  auto vectors = arrow::FixedSizeListArray::FromArrays(numbers.Finish().ValueOrDie(), 2)
                     .ValueOrDie();
  return arrow::Table::Make(
      BookSchema(), {ids.Finish().ValueOrDie(), titles.Finish().ValueOrDie(), vectors});
}

std::vector<int64_t> Ids(const std::shared_ptr<arrow::Table>& table) {
  std::vector<int64_t> out;
  for (const auto& chunk : table->GetColumnByName("id")->chunks()) {
    const auto& ids = static_cast<const arrow::Int64Array&>(*chunk);
    for (int64_t i = 0; i < ids.length(); ++i) out.push_back(ids.Value(i));
  }
  return out;
}

class PublicApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto connection, Connect("memory://"));
    db_ = std::make_unique<Connection>(std::move(connection));
  }
  std::unique_ptr<Connection> db_;
};

TEST_F(PublicApiTest, UpdateAndMerge) {
  ASSERT_OK_AND_ASSIGN(Table books, db_->CreateTable("books", Books(0, 10)));
  ASSERT_OK_AND_ASSIGN(const UpdateResult updated,
                       books.Update("id < 3", {{"title", "title || '!'"}}));
  EXPECT_EQ(updated.num_updated_rows, 3);
  EXPECT_EQ(updated.version, 2);
  MergeRequest request;
  request.on = {"id"};
  request.matched = WhenMatched::kUpdate;
  request.update_condition = "target.title <> 'book 9'";
  request.insert_not_matched = true;
  request.delete_not_in_source = true;
  request.delete_condition = "id < 2";
  const auto source = std::make_shared<arrow::TableBatchReader>(Books(2, 12));
  ASSERT_OK_AND_ASSIGN(const MergeResult merged, books.MergeInsert(source, request));
  EXPECT_EQ(merged.num_inserted_rows, 2);
  EXPECT_EQ(merged.num_updated_rows, 7);
  EXPECT_EQ(merged.num_deleted_rows, 2);
  EXPECT_EQ(merged.version, 3);
  ASSERT_OK_AND_ASSIGN(int64_t count, books.CountRows("title LIKE '%!'"));
  EXPECT_EQ(count, 0);
  request.matched = WhenMatched::kFail;
  request.update_condition.clear();
  const auto again = std::make_shared<arrow::TableBatchReader>(Books(5, 6));
  EXPECT_EQ(KindOf(books.MergeInsert(again, request).status()), ErrorKind::kInvalidInput);
  ASSERT_OK_AND_ASSIGN(count, books.CountRows());
  EXPECT_EQ(count, 10);
}

TEST_F(PublicApiTest, CreateAddScanSearch) {
  ASSERT_OK_AND_ASSIGN(Table books, db_->CreateTable("books", Books(0, 100)));
  ASSERT_OK_AND_ASSIGN(int64_t version, books.Add(Books(100, 150)));
  EXPECT_EQ(version, 2);
  ASSERT_OK_AND_ASSIGN(int64_t count, books.CountRows());
  EXPECT_EQ(count, 150);
  ASSERT_OK_AND_ASSIGN(count, books.CountRows("id >= 140 OR title = 'book 3'"));
  EXPECT_EQ(count, 11);

  ASSERT_OK_AND_ASSIGN(auto rows, books.Scan()
                                      .Select({"title", "id"})
                                      .Where("id > 97")
                                      .Offset(1)
                                      .Limit(3)
                                      .WithRowId()
                                      .ToTable());
  EXPECT_EQ(rows->schema()->field_names(),
            (std::vector<std::string>{"title", "id", "_rowid"}));
  EXPECT_EQ(Ids(rows), (std::vector<int64_t>{99, 100, 101}));

  ASSERT_OK_AND_ASSIGN(auto reader, books.Scan().BatchRows(40).ToReader());
  int64_t streamed = 0;
  while (true) {
    ASSERT_OK_AND_ASSIGN(auto batch, reader->Next());
    if (!batch) break;
    EXPECT_LE(batch->num_rows(), 40);
    streamed += batch->num_rows();
  }
  EXPECT_EQ(streamed, 150);

  ASSERT_OK_AND_ASSIGN(auto hits, books.Search({120.2f, 1.0f}).Limit(3).ToTable());
  EXPECT_EQ(Ids(hits), (std::vector<int64_t>{120, 121, 119}));
  EXPECT_EQ(hits->schema()->field_names().back(), "_distance");
  ASSERT_OK_AND_ASSIGN(
      hits,
      books.Search({0.0f, 1.0f}).Where("id > 77").Select({"id"}).Limit(2).ToTable());
  EXPECT_EQ(Ids(hits), (std::vector<int64_t>{78, 79}));
  ASSERT_OK_AND_ASSIGN(hits, books.Search({0.0f, 1.0f})
                                 .DistanceRange(4.0f, 16.0f)
                                 .DistanceType(Distance::kL2)
                                 .Column("vector")
                                 .ToTable());
  EXPECT_EQ(Ids(hits), (std::vector<int64_t>{2, 3}));

  ASSERT_OK_AND_ASSIGN(auto taken, books.TakeOffsets({149, 0, 149}, {"id"}));
  EXPECT_EQ(Ids(taken), (std::vector<int64_t>{149, 0, 149}));
}

TEST_F(PublicApiTest, WrongArgumentsAreTyped) {
  ASSERT_OK_AND_ASSIGN(Table books, db_->CreateTable("books", Books(0, 10)));
  auto kind = [](const auto& result) { return KindOf(result.status()); };
  EXPECT_EQ(kind(books.Search(std::vector<float>{}).ToTable()), ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Search({1.0f}).ToTable()), ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Search({1.0f, 2.0f}).Limit(0).ToTable()),
            ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Search({1.0f, 2.0f}).Offset(-1).ToTable()),
            ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Search({1.0f, 2.0f}).Column("nope").ToTable()),
            ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Search({1.0f, 2.0f}).Column("title").ToTable()),
            ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Scan().Where("id >").ToTable()), ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Scan().Limit(-1).ToTable()), ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Scan().Select({"id", "id"}).ToTable()), ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Delete(" ")), ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(books.Restore()), ErrorKind::kInvalidInput);
  EXPECT_EQ(kind(db_->OpenTable("none")), ErrorKind::kNotFound);
  EXPECT_EQ(kind(db_->CreateTable("books", Books(0, 1))), ErrorKind::kAlreadyExists);
  EXPECT_EQ(KindOf(db_->DropTable("none")), ErrorKind::kNotFound);
  EXPECT_EQ(kind(Connect("s3://bucket")), ErrorKind::kNotSupported);
  ConnectOptions options;
  options.storage_options["new_table_data_storage_version"] = "7.1";
  EXPECT_EQ(kind(Connect("memory://", options)), ErrorKind::kInvalidInput);
  ASSERT_OK_AND_ASSIGN(int64_t count, books.CountRows());
  EXPECT_EQ(count, 10);
}

TEST_F(PublicApiTest, ColumnsComeChangeAndGo) {
  ASSERT_OK_AND_ASSIGN(Table books, db_->CreateTable("books", Books(0, 10)));
  ASSERT_OK(books.AddColumns({{"twice", "id * 2"}}).status());
  ASSERT_OK(books.AddColumns(arrow::schema({field("note", arrow::utf8())})).status());
  ColumnChange change;
  change.path = "twice";
  change.rename = "double";
  change.type = arrow::int32();
  ASSERT_OK(books.AlterColumns({change}).status());
  ASSERT_OK_AND_ASSIGN(const int64_t version, books.DropColumns({"title", "note"}));
  EXPECT_EQ(version, 5);
  ASSERT_OK_AND_ASSIGN(auto schema, books.schema());
  EXPECT_EQ(schema->field_names(), (std::vector<std::string>{"id", "vector", "double"}));
  EXPECT_TRUE(schema->field(2)->type()->Equals(arrow::int32()));
  ASSERT_OK_AND_ASSIGN(const int64_t count, books.CountRows("double = id * 2"));
  EXPECT_EQ(count, 10);
  EXPECT_ERROR_KIND(books.DropColumns({"title"}), ErrorKind::kNotFound);
}

TEST_F(PublicApiTest, TableNames) {
  for (const char* name : {"b", "a.b", "C-3_x"}) {
    ASSERT_TRUE(db_->CreateTable(name, BookSchema()).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string("a b"), std::string("a\0b", 3), std::string("größe"),
        std::string(250, 'x')}) {
    EXPECT_EQ(KindOf(db_->CreateTable(name, BookSchema()).status()),
              ErrorKind::kInvalidInput)
        << name;
  }
  EXPECT_TRUE(db_->CreateTable(std::string(249, 'x'), BookSchema()).ok());
  ASSERT_OK(db_->DropTable(std::string(249, 'x')));
  ASSERT_OK_AND_ASSIGN(auto names, db_->TableNames());
  EXPECT_EQ(names, (std::vector<std::string>{"C-3_x", "a.b", "b"}));
  ASSERT_OK(db_->RenameTable("b", "z"));
  EXPECT_EQ(KindOf(db_->RenameTable("z", "a.b")), ErrorKind::kAlreadyExists);
  ASSERT_OK_AND_ASSIGN(names, db_->TableNames());
  EXPECT_EQ(names, (std::vector<std::string>{"C-3_x", "a.b", "z"}));
}

TEST_F(PublicApiTest, CreateModes) {
  ASSERT_OK_AND_ASSIGN(Table first, db_->CreateTable("t", Books(0, 3)));
  ASSERT_OK_AND_ASSIGN(Table same,
                       db_->CreateTable("t", Books(7, 9), CreateMode::kExistOk));
  ASSERT_OK_AND_ASSIGN(int64_t count, same.CountRows());
  EXPECT_EQ(count, 3);
  ASSERT_OK_AND_ASSIGN(Table over,
                       db_->CreateTable("t", Books(7, 9), CreateMode::kOverwrite));
  ASSERT_OK_AND_ASSIGN(int64_t version, over.version());
  EXPECT_EQ(version, 2);
  ASSERT_OK_AND_ASSIGN(count, over.CountRows());
  EXPECT_EQ(count, 2);
  ASSERT_OK_AND_ASSIGN(Table fresh,
                       db_->CreateTable("new", Books(0, 1), CreateMode::kOverwrite));
  ASSERT_OK_AND_ASSIGN(version, fresh.version());
  EXPECT_EQ(version, 1);
}

TEST_F(PublicApiTest, PinnedHandlesShowOneVersionAndRefuseWrites) {
  ASSERT_OK_AND_ASSIGN(Table t, db_->CreateTable("t", Books(0, 3)));
  ASSERT_OK(t.Add(Books(3, 5)).status());
  ASSERT_OK(t.CreateTag("two", 2));
  ASSERT_OK(t.Delete("id < 4").status());
  ASSERT_OK(t.Checkout(1));
  ASSERT_OK_AND_ASSIGN(int64_t count, t.CountRows());
  EXPECT_EQ(count, 3);
  EXPECT_EQ(KindOf(t.Add(Books(9, 10)).status()), ErrorKind::kInvalidInput);
  EXPECT_EQ(KindOf(t.Delete("true").status()), ErrorKind::kInvalidInput);
  ASSERT_OK(t.Checkout(std::string("two")));
  ASSERT_OK_AND_ASSIGN(count, t.CountRows());
  EXPECT_EQ(count, 5);
  EXPECT_EQ(KindOf(t.Checkout(99)), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(t.Checkout(std::string("none"))), ErrorKind::kNotFound);
  ASSERT_OK_AND_ASSIGN(int64_t version,
                       t.version());  // a failed checkout changes nothing
  EXPECT_EQ(version, 2);
  ASSERT_OK_AND_ASSIGN(version, t.Restore());
  EXPECT_EQ(version, 4);
  ASSERT_OK_AND_ASSIGN(count, t.CountRows());
  EXPECT_EQ(count, 5);
  ASSERT_OK_AND_ASSIGN(version, t.Add(Books(9, 10)));
  EXPECT_EQ(version, 5);
  ASSERT_OK_AND_ASSIGN(auto versions, t.ListVersions());
  EXPECT_EQ(versions.size(), 5u);
  ASSERT_OK_AND_ASSIGN(auto tags, t.ListTags());
  EXPECT_EQ(tags, (std::map<std::string, int64_t>{{"two", 2}}));
}

TEST_F(PublicApiTest, ReadConsistencyDecidesWhenOthersAreSeen) {
  const auto dir = std::filesystem::temp_directory_path() /
                   ("glaive_api_" + std::to_string(::getpid()));
  std::filesystem::remove_all(dir);
  auto connect = [&](std::optional<std::chrono::nanoseconds> interval) {
    ConnectOptions options;
    options.read_consistency_interval = interval;
    return Connect(dir.string(), options).ValueOrDie();
  };
  auto writer_db = connect(std::nullopt);
  ASSERT_OK_AND_ASSIGN(Table writer, writer_db.CreateTable("t", Books(0, 2)));
  ASSERT_OK_AND_ASSIGN(Table never, connect(std::nullopt).OpenTable("t"));
  ASSERT_OK_AND_ASSIGN(Table always, connect(std::chrono::nanoseconds(0)).OpenTable("t"));
  ASSERT_OK_AND_ASSIGN(Table later,
                       connect(std::chrono::milliseconds(300)).OpenTable("t"));
  ASSERT_OK(writer.Add(Books(2, 3)).status());
  auto count = [](const Table& t) { return t.CountRows().ValueOrDie(); };
  EXPECT_EQ(count(never), 2);
  EXPECT_EQ(count(always), 3);
  EXPECT_EQ(count(later), 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
  EXPECT_EQ(count(later), 3);
  EXPECT_EQ(count(never), 2);
  // Writes build on the latest version whatever the handle shows, and move it there.
  ASSERT_OK_AND_ASSIGN(auto deleted, never.Delete("id = 2"));
  EXPECT_EQ(deleted.num_deleted_rows, 1);
  EXPECT_EQ(deleted.version, 3);
  EXPECT_EQ(count(never), 2);
  ASSERT_OK(writer.Add(Books(5, 7)).status());
  EXPECT_EQ(count(never), 2);
  ASSERT_OK(never.CheckoutLatest());
  EXPECT_EQ(count(never), 4);
  std::filesystem::remove_all(dir);
}

TEST_F(PublicApiTest, OverwritersOfOneNameAllSucceed) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = "t" + std::to_string(round);
    std::vector<std::thread> threads;
    std::vector<Status> results(4);
    for (int who = 0; who < 4; ++who) {
      threads.emplace_back([&, who] {
        auto table = db_->CreateTable(name, Books(100 * who, 100 * who + who + 1),
                                      CreateMode::kOverwrite);
        results[who] = table.status();
      });
    }
    for (auto& thread : threads) thread.join();
    for (const Status& status : results) EXPECT_TRUE(status.ok()) << status;
    ASSERT_OK_AND_ASSIGN(Table t, db_->OpenTable(name));
    ASSERT_OK_AND_ASSIGN(auto rows, t.Scan().ToTable());
    const auto ids = Ids(rows);
    ASSERT_FALSE(ids.empty());
    EXPECT_EQ(static_cast<int64_t>(ids.size()), ids[0] / 100 + 1);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(ids[i], ids[0] + static_cast<int64_t>(i));
    }
  }
}

TEST_F(PublicApiTest, ThreadsShareOneHandle) {
  ASSERT_OK_AND_ASSIGN(Table t, db_->CreateTable("t", Books(0, 100)));
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int who = 0; who < 4; ++who) {
    threads.emplace_back([&, who] {
      for (int i = 0; i < 10; ++i) {
        const int64_t id = 1000 + who * 100 + i;
        if (!t.Add(Books(id, id + 1)).ok()) ++failures;
        if (!t.Delete("id = " + std::to_string(who * 25 + i)).ok()) ++failures;
        auto rows = t.Search({0.0f, 1.0f}).Limit(5).ToTable();
        if (!rows.ok() || (*rows)->num_rows() != 5) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  ASSERT_OK_AND_ASSIGN(int64_t count, t.CountRows());
  EXPECT_EQ(count, 100);
  ASSERT_OK_AND_ASSIGN(int64_t version, t.version());
  EXPECT_EQ(version, 81);
}

TEST_F(PublicApiTest, ClosedConnectionsSaySo) {
  ASSERT_OK_AND_ASSIGN(auto connection, db::Connection::Open("memory://", {}));
  ASSERT_OK_AND_ASSIGN(auto table, connection->CreateEmptyTable("t", *BookSchema(), {}));
  connection->Close();
  auto names = connection->TableNames(std::nullopt, std::nullopt);
  EXPECT_EQ(KindOf(names.status()), ErrorKind::kClosed);
  EXPECT_NE(names.status().message().find("is closed"), std::string::npos);
  EXPECT_TRUE(table->Snapshot().ok());
  table->Close();
  EXPECT_EQ(KindOf(table->Snapshot().status()), ErrorKind::kClosed);
}

}  // namespace
}  // namespace glaive
