// What is particular to files: leftovers, damage by others, limits, the cache of open
// files.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <random>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "io/file_cache.h"
#include "io/object_store.h"
#include "io/test_util.h"
#include "runtime/inline_scope.h"

namespace glaive::io {
namespace {

namespace fs = std::filesystem;

class LocalStoreTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  std::string root_ = directory_.path() + "/store";
  std::shared_ptr<ObjectStore> store_ = OpenLocalStore(root_, true).ValueOrDie();

  // All names in the directory, hidden temporaries included.
  std::vector<std::string> FilesOnDisk() {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (!entry.is_directory()) names.push_back(fs::relative(entry.path(), root_));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(LocalStoreTest, NothingIsLeftBesidePublishedFiles) {
  for (const PublishMethod method :
       {PublishMethod::kLink, PublishMethod::kRenameNoReplace,
        PublishMethod::kExclusiveCreate}) {
    LocalStoreOptions options;
    options.publish_method = method;
    ASSERT_OK_AND_ASSIGN(auto store, OpenLocalStore(root_, true, options));
    const std::string name = "m" + std::to_string(static_cast<int>(method));
    ASSERT_OK(store->PutIfAbsent(name, Bytes("x")));
    EXPECT_KIND(ErrorKind::kAlreadyExists, store->PutIfAbsent(name, Bytes("y")));
    const std::span<const uint8_t> part = Bytes("cached");
    ASSERT_OK(store->PutPartsIfAbsent("d/" + name, {&part, 1}, false));
    EXPECT_KIND(ErrorKind::kAlreadyExists,
                store->PutPartsIfAbsent("d/" + name, {&part, 1}, false));
    EXPECT_KIND(ErrorKind::kInvalidInput,
                store->PutPartsIfAbsent(std::string(300, 'n'), {&part, 1}, false));
    EXPECT_EQ(Text(store->Get("d/" + name).ValueOrDie()), "cached");
    ASSERT_OK(store->Put("put", Bytes("x")));
    ASSERT_OK_AND_ASSIGN(auto writer, store->Create("created"));
    ASSERT_OK(writer->Append(Bytes("abc")));
    ASSERT_OK(writer->Finish());
    EXPECT_KIND(ErrorKind::kInvalidInput, store->Put(std::string(300, 'n'), Bytes("x")));
  }
  EXPECT_EQ(FilesOnDisk(), (std::vector<std::string>{"created", "d/m0", "d/m1", "d/m2",
                                                     "m0", "m1", "m2", "put"}));
}

TEST_F(LocalStoreTest, WhatBackgroundWorkWritesIsTheSame) {
  std::string text;
  for (int64_t i = 0; text.size() < (size_t{3} << 20); ++i)
    text += std::to_string(i * 7919);
  const InlineScope background;
  ASSERT_OK_AND_ASSIGN(auto writer, store_->Create("pieces"));
  const std::string_view whole = text;
  for (size_t at = 0, size = 1; at < whole.size(); at += size, size = size * 3 + 1) {
    ASSERT_OK(writer->Append(Bytes(whole.substr(at, size))));
  }
  ASSERT_OK(writer->Finish());
  EXPECT_TRUE(Text(store_->Get("pieces").ValueOrDie()) == text);
}

TEST_F(LocalStoreTest, TemporariesOfACrashedWriterAreNotListed) {
  ASSERT_OK(store_->Put("d/x", Bytes("x")));
  std::ofstream(root_ + "/d/.tmp-1-2-3") << "half";
  fs::create_directory(root_ + "/.tmp-is-a-fine-directory");
  ASSERT_OK(store_->Put(".tmp-is-a-fine-directory/y", Bytes("y")));
  ASSERT_OK_AND_ASSIGN(auto infos, store_->List("", true));
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_EQ(infos[0].path, ".tmp-is-a-fine-directory/y");
  EXPECT_EQ(infos[1].path, "d/x");
  EXPECT_EQ(store_->ListNames("d").ValueOrDie(), std::vector<std::string>{"x"});
  ASSERT_OK(store_->DeleteTree("d"));
  EXPECT_FALSE(fs::exists(root_ + "/d"));
}

TEST_F(LocalStoreTest, TruncatedFileIsCorruptionOnTheNextOpen) {
  ASSERT_OK(store_->Put("x", Bytes(std::string(100'000, 'x'))));
  ASSERT_OK(store_->Open("x", 100'000).status());
  fs::resize_file(root_ + "/x", 50'000);
  EXPECT_KIND(ErrorKind::kCorruption, store_->Open("x", 100'000).status());
  ASSERT_OK_AND_ASSIGN(auto object, store_->Open("x"));
  EXPECT_EQ(object->size_bytes(), 50'000);
  EXPECT_KIND(ErrorKind::kCorruption, object->Read({49'999, 2}).status());
  EXPECT_EQ(Text(*object->Read({49'999, 1})), "x");
}

TEST_F(LocalStoreTest, FilesChangedInPlaceAreReadAnew) {
  for (const int size : {10, 100'000}) {
    ASSERT_OK(store_->Put("x", Bytes(std::string(size, '1'))));
    ASSERT_OK(store_->Open("x").status());
    std::fstream file(root_ + "/x", std::ios::in | std::ios::out);
    file << "2";
    file.close();
    ASSERT_OK_AND_ASSIGN(auto object, store_->Open("x"));
    EXPECT_EQ(Text(*object->Read({0, 2})), "21");
  }
}

TEST_F(LocalStoreTest, OddFilesAreTypedErrors) {
  ASSERT_EQ(::mkfifo((root_ + "/fifo").c_str(), 0600), 0);
  EXPECT_KIND(ErrorKind::kInvalidInput, store_->Open("fifo").status());
  EXPECT_KIND(ErrorKind::kInvalidInput, store_->Get("fifo").status());
  fs::create_directory(root_ + "/dir");
  EXPECT_KIND(ErrorKind::kNotFound, store_->Open("dir").status());
  EXPECT_KIND(ErrorKind::kInvalidInput, store_->Put("dir", Bytes("x")));
  EXPECT_KIND(ErrorKind::kAlreadyExists, store_->PutIfAbsent("dir", Bytes("x")));
  ASSERT_OK(store_->Put("file", Bytes("x")));
  EXPECT_KIND(ErrorKind::kInvalidInput, store_->Put("file/below", Bytes("x")));
  EXPECT_KIND(ErrorKind::kInvalidInput, store_->DeleteTree("file"));
  fs::create_symlink(root_ + "/nowhere", root_ + "/dangling");
  EXPECT_KIND(ErrorKind::kNotFound, store_->Open("dangling").status());
  EXPECT_KIND(ErrorKind::kAlreadyExists, store_->PutIfAbsent("dangling", Bytes("x")));
}

TEST_F(LocalStoreTest, DeleteTreeDoesNotFollowLinks) {
  TemporaryDirectory outside;
  std::ofstream(outside.path() + "/keep") << "x";
  ASSERT_OK(store_->Put("t/a", Bytes("x")));
  fs::create_directory_symlink(outside.path(), root_ + "/t/link");
  ASSERT_OK(store_->DeleteTree("t"));
  EXPECT_TRUE(fs::exists(outside.path() + "/keep"));
  EXPECT_FALSE(fs::exists(root_ + "/t"));
}

TEST_F(LocalStoreTest, AbortedWritesRemoveTheirFile) {
  ASSERT_OK_AND_ASSIGN(auto writer, store_->Create("x"));
  ASSERT_OK(writer->Append(Bytes(std::string(3'000'000, 'x'))));
  EXPECT_EQ(FilesOnDisk().size(), 1u);
  writer->Abort();
  EXPECT_EQ(FilesOnDisk().size(), 0u);
}

// Makes system call `number` of this process fail with `error_number` from now on.
bool Refuse(uint32_t number, uint32_t error_number) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {4, filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Runs in a child, where links (and, if asked, exclusive renames) are refused as on some
// file systems. 0: all well.
int PublishWithRefusals(ObjectStore* store, bool refuse_rename) {
  if (!Refuse(SYS_link, EPERM) || !Refuse(SYS_linkat, EPERM)) return 77;
  if (refuse_rename && !Refuse(SYS_renameat2, EINVAL)) return 77;
  for (const char* name : {"a", "b"}) {
    if (!store->PutIfAbsent(name, Bytes(name)).ok()) return 1;
    if (KindOf(store->PutIfAbsent(name, Bytes("other"))) != ErrorKind::kAlreadyExists) {
      return 2;
    }
    auto content = store->Get(name);
    if (!content.ok() || Text(*content) != name) return 3;
  }
  return 0;
}

TEST_F(LocalStoreTest, RefusedLinksFallBack) {
  for (const bool refuse_rename : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = OpenLocalStore(root_, true);
      ::_exit(store.ok() ? PublishWithRefusals(store->get(), refuse_rename) : 4);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no seccomp here";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(FilesOnDisk(), (std::vector<std::string>{"a", "b"}));
    ASSERT_OK(store_->Delete("a"));
    ASSERT_OK(store_->Delete("b"));
  }
}

TEST(FileCache, IsBounded) {
  TemporaryDirectory directory;
  FileCache cache(4);
  std::vector<std::string> paths;
  for (int i = 0; i < 10; ++i) {
    paths.push_back(directory.path() + "/" + std::to_string(i));
    std::ofstream(paths.back()) << std::string(static_cast<size_t>(i) * 5'000, 'x');
  }
  ASSERT_OK_AND_ASSIGN(auto first, cache.Open(paths[0]));
  for (const std::string& path : paths) {
    ASSERT_OK(cache.Open(path).status());
    ASSERT_OK_AND_ASSIGN(auto again, cache.Open(paths[0]));
    EXPECT_EQ(again.get(), first.get());  // used all the time: never evicted
    EXPECT_LE(cache.num_files(), 4);
  }
  ASSERT_OK_AND_ASSIGN(auto last, cache.Open(paths[9]));
  cache.Forget(paths[9]);
  EXPECT_EQ(cache.num_files(), 3);
  ASSERT_OK_AND_ASSIGN(auto remapped, cache.Open(paths[9]));
  EXPECT_NE(remapped.get(), last.get());
  cache.ForgetTree(directory.path());
  EXPECT_EQ(cache.num_files(), 0);
  EXPECT_EQ(last->content->size(), 45'000);
}

TEST(FileCache, WorksUnderConcurrentReplacement) {
  TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(auto store, OpenLocalStore(directory.path(), false));
  const auto content = [](int v) {
    return std::string(40'000, static_cast<char>('a' + v));
  };
  ASSERT_OK(store->Put("x", Bytes(content(0)), false));
  std::atomic<bool> stop{false};
  std::atomic<int64_t> torn{0}, failed{0}, read{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        auto object = store->Open("x");
        if (!object.ok()) {
          if (KindOf(object.status()) != ErrorKind::kNotFound) ++failed;
          continue;
        }
        const std::string text = Text(*(*object)->Read({0, (*object)->size_bytes()}));
        if (text != std::string(40'000, text[0])) ++torn;
        ++read;
      }
    });
  }
  for (int i = 1; i < 300; ++i) {
    ASSERT_OK(store->Put("x", Bytes(content(i % 26)), false));
    if (i % 10 == 0) ASSERT_OK(store->Delete("x"));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_GT(read, 0);
}

TEST(FileCache, SurvivesForkWhileOthersUseIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's allocator does not survive a fork beside busy threads";
#endif
  TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(auto store, OpenLocalStore(directory.path(), false));
  ASSERT_OK(store->Put("x", Bytes(std::string(40'000, 'x')), false));
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)store->Open("x").status();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      const bool right = store->Open("x").ok() &&
                         Text(*store->Get("x")) == std::string(40'000, 'x') &&
                         store->PutIfAbsent("child" + std::to_string(i), Bytes("c")).ok();
      ::_exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  EXPECT_EQ(store->ListNames("").ValueOrDie().size(), 21u);
}

}  // namespace
}  // namespace glaive::io
