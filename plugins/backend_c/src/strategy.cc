// Custom batching: a library that decides which waiting requests share a batch.
#include "edge.h"

using tritonpy::error;
using tritonpy::find;
using tritonpy::guarded;
using tritonpy::status;

namespace {

// The strategy of one model. The caller makes sure that one thread at a time uses it.
struct Strategy {
  TRITONSERVER_Error* (*initialize)(TRITONBACKEND_Batcher**, TRITONBACKEND_Model*) = nullptr;
  TRITONSERVER_Error* (*finalize)(TRITONBACKEND_Batcher*) = nullptr;
  TRITONSERVER_Error* (*start)(const TRITONBACKEND_Batcher*, void**) = nullptr;
  TRITONSERVER_Error* (*include)(TRITONBACKEND_Request*, void*, bool*) = nullptr;
  TRITONSERVER_Error* (*end)(void*) = nullptr;
  TRITONBACKEND_Backend backend;  // for functions that ask for it
  TRITONBACKEND_Model model;
  // Owns the requests that the strategy sees. It is closed, so that a response is dropped.
  std::shared_ptr<TRITONBACKEND_ModelInstance> instance;
  TRITONBACKEND_Batcher* batcher = nullptr;
  void* batch = nullptr;
  std::vector<TRITONBACKEND_Request*> requests;  // of the running batch
};

int64_t end_batch(Strategy* strategy) {
  void* const batch = strategy->batch;
  strategy->batch = nullptr;
  int64_t code = -1;
  if (batch) {
    code = status(guarded("TRITONBACKEND_ModelBatchFinalize", [&] { return strategy->end(batch); }));
  }
  for (TRITONBACKEND_Request* request : strategy->requests) tritonpy::release_request(request);
  strategy->requests.clear();
  return code;
}

}  // namespace

extern "C" {

// Load a library and initialize its batcher for a model.
TRITON_HOST int64_t tritonpy_strategy_open(const char* path, const char* name, int64_t version,
                                           const char* repository, const char* config,
                                           int64_t owner, void** result) {
  void* library = nullptr;
  if (TRITONSERVER_Error* failure = tritonpy::open_library(path, &library)) return status(failure);
  auto strategy = std::make_unique<Strategy>();
  find(library, "TRITONBACKEND_ModelBatcherInitialize", &strategy->initialize);
  find(library, "TRITONBACKEND_ModelBatcherFinalize", &strategy->finalize);
  find(library, "TRITONBACKEND_ModelBatchInitialize", &strategy->start);
  find(library, "TRITONBACKEND_ModelBatchIncludeRequest", &strategy->include);
  find(library, "TRITONBACKEND_ModelBatchFinalize", &strategy->end);
  if (!strategy->initialize || !strategy->finalize || !strategy->start || !strategy->include ||
      !strategy->end) {
    return status(error(TRITONSERVER_ERROR_INVALID_ARG,
                        std::string(path) +
                            " does not define all required custom batching functions for model " +
                            name));
  }
  TRITONBACKEND_Model& model = strategy->model;
  model.backend = &strategy->backend;
  model.name = name;
  model.version = static_cast<uint64_t>(version);
  model.repository = repository;
  model.config = config;
  model.server.model = owner;
  strategy->instance = std::make_shared<TRITONBACKEND_ModelInstance>();
  strategy->instance->model = &model;
  strategy->instance->closed = true;
  tritonpy::ModelScope scope(owner);
  const int64_t code = status(guarded("TRITONBACKEND_ModelBatcherInitialize", [&] {
    return strategy->initialize(&strategy->batcher, &model);
  }));
  if (code >= 0) return code;
  *result = strategy.release();
  return -1;
}

// End the running batch, if any, and start another one.
TRITON_HOST int64_t tritonpy_strategy_start(void* handle) {
  auto* strategy = static_cast<Strategy*>(handle);
  tritonpy::ModelScope scope(strategy->model.server.model);
  const int64_t code = end_batch(strategy);
  if (code >= 0) return code;
  return status(guarded("TRITONBACKEND_ModelBatchInitialize", [&] {
    return strategy->start(strategy->batcher, &strategy->batch);
  }));
}

// Decide whether a request, as `read_request` reads it, joins the running batch.
TRITON_HOST int64_t tritonpy_strategy_include(void* handle, const int64_t* words, const char* text,
                                              int64_t* included) {
  auto* strategy = static_cast<Strategy*>(handle);
  tritonpy::ModelScope scope(strategy->model.server.model);
  tritonpy::Reader reader(words, text);
  strategy->requests.push_back(tritonpy::read_request(&reader, strategy->instance));
  bool should_include = false;
  const int64_t code = status(guarded("TRITONBACKEND_ModelBatchIncludeRequest", [&] {
    return strategy->include(strategy->requests.back(), strategy->batch, &should_include);
  }));
  *included = should_include;
  return code;
}

TRITON_HOST int64_t tritonpy_strategy_close(void* handle) {
  std::unique_ptr<Strategy> strategy(static_cast<Strategy*>(handle));
  tritonpy::ModelScope scope(strategy->model.server.model);
  end_batch(strategy.get());
  return status(guarded("TRITONBACKEND_ModelBatcherFinalize",
                        [&] { return strategy->finalize(strategy->batcher); }));
}

}  // extern "C"
