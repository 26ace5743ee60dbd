// Buffers and their pools: sizes, reuse, limits, memory of others.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/memory_use.h"

using namespace tn;

TEST_CASE("buffer: aligned, writable, counted exactly, for every size") {
  size_t before = active_memory();
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{1000}, size_t{100'000},
        (size_t{1} << 20) - 1, size_t{1} << 20, size_t{5'000'001}}) {
    BufferRef a = allocate(bytes);
    CHECK(active_memory() == before + bytes);
    CHECK(a.bytes() == bytes);
    CHECK(a.unique());
    CHECK(a->device == Device{});
    CHECK(reinterpret_cast<uintptr_t>(a.data()) % 64 == 0);
    std::memset(a.data(), 1, bytes);
    BufferRef b = a;
    CHECK(!a.unique());
    a.reset();
    CHECK(b.unique());
    CHECK(active_memory() == before + bytes);
    BufferRef c = std::move(b);
    CHECK(!b);
  }
  CHECK(active_memory() == before);
}

TEST_CASE("buffer: neighbours of every size class keep apart") {
  std::vector<BufferRef> all;
  for (size_t bytes = 1; bytes < 1'200'000; bytes = bytes * 9 / 8 + 7) {
    all.push_back(allocate(bytes));
    std::memset(all.back().data(), static_cast<int>(all.size()), bytes);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const unsigned char* bytes = all[i].data<unsigned char>();
    CHECK(bytes[0] == static_cast<unsigned char>(i + 1));
    CHECK(bytes[all[i].bytes() - 1] == static_cast<unsigned char>(i + 1));
  }
}

TEST_CASE("buffer: large blocks are kept, reused and trimmed") {
  clear_cache();
  size_t cached = cache_memory();
  void* first;
  {
    BufferRef a = allocate(size_t{8} << 20);
    CHECK(!a->recycled);
    CHECK(reinterpret_cast<uintptr_t>(a.data()) % (size_t{2} << 20) == 0);
    first = a.data();
  }
  CHECK(cache_memory() >= cached + (size_t{8} << 20));
  {
    BufferRef again = allocate((size_t{8} << 20) - 100);
    CHECK(again.data() == first);
    CHECK(again->recycled);
    BufferRef small = allocate(size_t{1} << 20);  // must not take a block four times its size
    CHECK(!small->recycled);
  }
  size_t limit = set_cache_limit(size_t{4} << 20);
  CHECK(cache_memory() <= cached + (size_t{4} << 20) + 4096);
  set_cache_limit(limit);
  clear_cache();
  CHECK(cache_memory() <= cached + 4096);
}

TEST_CASE("buffer: the peak is the highest sum") {
  reset_peak_memory();
  size_t base = active_memory();
  {
    BufferRef a = allocate(3000), b = allocate(2'000'000);
  }
  BufferRef c = allocate(10);
  CHECK(peak_memory() == base + 2'003'000);
  reset_peak_memory();
  CHECK(peak_memory() == base + 10);
}

TEST_CASE("buffer: too much fails at once, says what was asked, and loses nothing") {
  size_t before = active_memory();
  std::string text;
  try {
    allocate(size_t{1} << 52);
  } catch (const UserError& error) {
    CHECK(error.fault() == Fault::memory);
    text = error.what();
  }
  CHECK(text.find("4.00 PiB requested") != std::string::npos);
  CHECK(text.find("limit") != std::string::npos);
  CHECK_THROWS_AS(allocate(~size_t{0}), UserError);
  CHECK_THROWS_AS(allocate(~size_t{0} - (size_t{1} << 20)), UserError);
  size_t limit = set_memory_limit(before + 5000);
  BufferRef a = allocate(4000);
  CHECK_THROWS_AS(allocate(2000), UserError);
  a.reset();
  BufferRef b = allocate(5000);
  set_memory_limit(0);
  CHECK(memory_limit() == limit);
  b.reset();
  CHECK(active_memory() == before);
}

TEST_CASE("buffer: foreign memory is released once, by the last reference") {
  size_t before = active_memory();
  int released = 0;
  char memory[8];
  BufferRef a = adopt(memory, 8, &released, [](void* owner) { ++*static_cast<int*>(owner); }, true);
  CHECK(a.data() == memory);
  CHECK(a->read_only);
  CHECK(active_memory() == before);
  BufferRef b = a;
  a.reset();
  CHECK(released == 0);
  b.reset();
  CHECK(released == 1);
  adopt(memory, 8, nullptr, nullptr, false);
}

TEST_CASE("buffer: threads allocate, hand over and release") {
  size_t before = active_memory();
  std::vector<BufferRef> handed(400);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 20'000; ++i) {
        BufferRef a = allocate(i % 3000), b = a;
        if (i % 200 == 0) handed[t * 100 + i / 200] = std::move(b);
      }
    });
  for (std::thread& thread : threads) thread.join();
  handed.clear();
  CHECK(active_memory() == before);
  std::thread([] { clear_cache(); }).join();
}

TEST_CASE("buffer: sizes as text") {
  CHECK(bytes_text(12) == "12 bytes");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(bytes_text(size_t{3} << 30) == "3.00 GiB");
}
