// Runs a cache, an agent and a batching strategy without Python, so that sanitizers see only the
// library and them. Four threads use the cache and the agent; each has a strategy of its own.
//
//   libraries_driver FOLDER ROUNDS
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern "C" {
const char* tritonpy_message();
void tritonpy_free(void*);
void tritonpy_serve(int64_t, int64_t);
void* tritonpy_layout_new(const int64_t*, const char*);
void tritonpy_layout_delete(void*);
int64_t tritonpy_cache_open(const char*, const char*, int64_t, void**);
int64_t tritonpy_cache_lookup(void*, const char*, void**, int64_t*);
int64_t tritonpy_cache_insert(void*, const char*, const int64_t*);
int64_t tritonpy_cache_close(void*);
int64_t tritonpy_agent_open(const char*, void**);
int64_t tritonpy_agent_close(void*);
int64_t tritonpy_agent_model_open(void*, const char*, const char*, const int64_t*, const char*,
                                  void**);
int64_t tritonpy_agent_model_act(void*, int64_t);
int64_t tritonpy_agent_model_close(void*);
int64_t tritonpy_strategy_open(const char*, const char*, int64_t, const char*, const char*,
                               int64_t, void**);
int64_t tritonpy_strategy_start(void*);
int64_t tritonpy_strategy_include(void*, const int64_t*, const char*, int64_t*);
int64_t tritonpy_strategy_close(void*);
}

namespace {

constexpr int64_t kAlreadyExists = 6, kNotFound = 2;
const char kConfig[] = "{\"name\":\"m\",\"parameters\":{\"MOST\":{\"string_value\":\"10\"}}}";

void check(int64_t code) {
  if (code < 0) return;
  fprintf(stderr, "error %lld: %s\n", static_cast<long long>(code), tritonpy_message());
  exit(2);
}

int64_t address(const void* data) { return reinterpret_cast<int64_t>(data); }

// Look up 20 keys, and insert what is missing. Returns the number of wrong responses.
int use_cache(void* cache, int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string key = "key" + std::to_string(i % 20), head = "head", body(i % 20 * 50, 'x');
    void* memory = nullptr;
    int64_t size = 0;
    const int64_t found = tritonpy_cache_lookup(cache, key.c_str(), &memory, &size);
    if (found == kNotFound) {
      const int64_t words[] = {2, address(head.data()), 4, address(body.data()),
                               static_cast<int64_t>(body.size())};
      const int64_t code = tritonpy_cache_insert(cache, key.c_str(), words);
      if (code != kAlreadyExists) check(code);
      continue;
    }
    check(found);
    const std::string expected = head + body;
    wrong += size != static_cast<int64_t>(expected.size()) ||
             memcmp(memory, expected.data(), expected.size()) != 0;
    tritonpy_free(memory);
  }
  return wrong;
}

void use_agent(void* agent, int rounds) {
  const int64_t no_parameters[] = {0};
  for (int i = 0; i < rounds; ++i) {
    void* model = nullptr;
    check(tritonpy_agent_model_open(agent, ".", kConfig, no_parameters, "", &model));
    for (int64_t action = 1; action < 5; ++action) check(tritonpy_agent_model_act(model, action));
    check(tritonpy_agent_model_close(model));
  }
}

// Fill batches up to a sum of 10 with the numbers from 1 to 5. Returns the number of wrong batches.
int use_strategy(const std::string& path, int rounds) {
  void* strategy = nullptr;
  check(tritonpy_strategy_open(path.c_str(), "m", 1, ".", kConfig, -1, &strategy));
  const int64_t tensor[] = {1, 0, 2, 8, 1, 1, 1, 2, 3};
  void* layout = tritonpy_layout_new(tensor, "INOUT");
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    check(tritonpy_strategy_start(strategy));
    int included_count = 0;
    for (int32_t value = 1; value <= 5; ++value) {
      const int64_t words[] = {-1, address(layout), 0, 0, 0, 0, 0, 0,
                               0,  0,               0, 0, 0, 0, address(&value), 4};
      int64_t included = 0;
      check(tritonpy_strategy_include(strategy, words, "", &included));
      included_count += included != 0;
    }
    wrong += included_count != 4;
  }
  tritonpy_layout_delete(layout);
  check(tritonpy_strategy_close(strategy));
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string folder = argv[1];
  const int rounds = atoi(argv[2]);
  tritonpy_serve(1, 0);
  void *cache = nullptr, *agent = nullptr;
  check(tritonpy_cache_open((folder + "/cache.so").c_str(), "{\"no metrics\": \"yes\"}", -1, &cache));
  check(tritonpy_agent_open((folder + "/agent.so").c_str(), &agent));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      wrong += use_cache(cache, rounds);
      use_agent(agent, rounds / 10);
      wrong += use_strategy(folder + "/strategy.so", rounds);
    });
  }
  for (std::thread& thread : threads) thread.join();
  check(tritonpy_agent_close(agent));
  check(tritonpy_cache_close(cache));
  printf("%d rounds, %d wrong\n", rounds, wrong.load());
  return wrong ? 1 : 0;
}
