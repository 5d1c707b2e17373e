// Runs a misbehaving backend without Python, so that sanitizers see only the library and the
// backend. Two instances execute batches of every kind of misbehavior that does not end the
// process; the main thread reads events as Python does. Each request must end exactly once.
//
//   driver BACKEND.so REQUESTS
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "triton/core/tritonbackend.h"

extern "C" {
const char* tritonpy_message();
void tritonpy_free(void*);
void tritonpy_serve(int64_t, int64_t);
int64_t tritonpy_backend_open(const char*, const char*, const char*, const char*, int64_t, void**);
int64_t tritonpy_backend_close(void*);
int64_t tritonpy_model_open(void*, const char*, int64_t, const char*, const char*, const char*,
                            int64_t, int64_t, int64_t, void**);
int64_t tritonpy_model_close(void*);
int64_t tritonpy_instance_open(void*, int64_t, const int64_t*, const char*, void**);
int64_t tritonpy_instance_close(void*);
void tritonpy_instance_delete(void*);
void* tritonpy_layout_new(const int64_t*, const char*);
void tritonpy_layout_delete(void*);
int64_t tritonpy_execute(void*, const int64_t*, const char*, int64_t*, int64_t, char*, int64_t);
int64_t tritonpy_wait(int64_t, int64_t*, int64_t, char*, int64_t);
int64_t tritonpy_open_requests(void*);
}

namespace {

constexpr int64_t kWords = 65536, kBytes = 1 << 20;
// All modes of misbehave.cc but those that end the process, sleep, or never answer.
const int32_t kModes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17};

void check(int64_t code) {
  if (code < 0) return;
  fprintf(stderr, "error %lld: %s\n", static_cast<long long>(code), tritonpy_message());
  exit(2);
}

struct Buffers {
  std::vector<int64_t> words = std::vector<int64_t>(kWords);
  std::vector<char> bytes = std::vector<char>(kBytes);
};

std::mutex finals_mutex;
std::vector<uint8_t> finals;  // final responses by tag
std::vector<uint8_t> failed;  // requests that the server failed, and whose responses it drops

void add_final(int64_t tag) {
  std::lock_guard<std::mutex> lock(finals_mutex);
  if (!failed[static_cast<size_t>(tag)]) ++finals[static_cast<size_t>(tag)];
}

// Count the final responses among events.
void read_events(const int64_t* at, const int64_t* end) {
  while (at < end) {
    const int64_t kind = at[0], tag = at[2];
    if (kind == 2 || kind == 3 || kind == 5 || kind == 9) {
      at += 3;
      continue;
    }
    const int64_t flags = at[3];
    at += 9;
    for (int64_t left = *at++; left > 0; --left) at += 5;
    for (int64_t left = *at++; left > 0; --left) {
      if (*at++ < 0) at += 4 + at[3];
      const bool inside = *at++;
      if (!inside) tritonpy_free(reinterpret_cast<void*>(at[0]));
      at += 2;
    }
    if (kind == 1 && (flags & 1)) add_final(tag);
  }
}

struct Execution {
  void* instance;
  void* layout;
  int64_t first;
  int64_t count;
};

void run(const Execution& execution, unsigned seed) {
  std::mt19937 random(seed);
  Buffers buffers;
  std::vector<int32_t> values(8);
  int64_t tag = execution.first;
  const int64_t end = execution.first + execution.count;
  while (tag < end) {
    const int64_t size = std::min<int64_t>(1 + random() % 8, end - tag);
    std::vector<int64_t> words = {size};
    for (int64_t i = 0; i < size; ++i) {
      values[static_cast<size_t>(i)] = kModes[random() % (sizeof kModes / sizeof *kModes)];
      words.insert(words.end(),
                   {tag + i, reinterpret_cast<int64_t>(execution.layout), 0, 0, 0, 0, 0, 0, 0, 0,
                    0, 0, 0, 0, reinterpret_cast<int64_t>(&values[static_cast<size_t>(i)]), 4});
    }
    const int64_t count =
        tritonpy_execute(execution.instance, words.data(), "", buffers.words.data(), kWords,
                         buffers.bytes.data(), kBytes);
    read_events(buffers.words.data() + 6, buffers.words.data() + count);
    if (buffers.words[0] >= 0) {
      // Those that the backend had not answered are failed by the server.
      std::lock_guard<std::mutex> lock(finals_mutex);
      for (int64_t i = tag; i < tag + size; ++i) {
        if (!finals[static_cast<size_t>(i)]) {
          finals[static_cast<size_t>(i)] = failed[static_cast<size_t>(i)] = 1;
        }
      }
    }
    // The values live until the requests are released; late readers would be a bug of the backend.
    while (tritonpy_open_requests(execution.instance)) std::this_thread::yield();
    tag += size;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int64_t total = atoll(argv[2]) / 2 * 2;
  finals.resize(static_cast<size_t>(total));
  failed.resize(static_cast<size_t>(total));
  tritonpy_serve(1, 0);
  void *backend = nullptr, *model = nullptr, *instances[2] = {};
  check(tritonpy_backend_open("misbehave", argv[1], ".", "{}", 1, &backend));
  check(tritonpy_model_open(backend, "m", 1, ".", "{}", "", 0, 0, 1, &model));
  const int64_t description[] = {1, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0};
  const int64_t tensor[] = {1, 0, 2, TRITONSERVER_TYPE_INT32, 1, 1, 1, 2, 3};
  void* layout = tritonpy_layout_new(tensor, "INOUT");
  std::vector<std::thread> threads;
  std::atomic<int> running{2};
  for (int i = 0; i < 2; ++i) {
    check(tritonpy_instance_open(model, 10 + i, description, "m_0", &instances[i]));
    const Execution execution = {instances[i], layout, i * (total / 2), total / 2};
    threads.emplace_back([execution, i, &running] {
      run(execution, static_cast<unsigned>(i));
      --running;
    });
  }
  Buffers buffers;
  while (true) {
    const bool last = !running;
    const int64_t count =
        tritonpy_wait(2000, buffers.words.data(), kWords, buffers.bytes.data(), kBytes);
    if (count > 0) read_events(buffers.words.data() + 1, buffers.words.data() + count);
    if (last && count == 0) break;
  }
  for (std::thread& thread : threads) thread.join();
  for (void* instance : instances) {
    check(tritonpy_instance_close(instance));
    tritonpy_instance_delete(instance);
  }
  tritonpy_layout_delete(layout);
  check(tritonpy_model_close(model));
  check(tritonpy_backend_close(backend));
  int64_t wrong = 0;
  for (uint8_t count : finals) wrong += count != 1;
  printf("%lld requests, %lld without exactly one final response\n",
         static_cast<long long>(total), static_cast<long long>(wrong));
  return wrong ? 1 : 0;
}
