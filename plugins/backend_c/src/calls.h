// Requests to other models, and their responses.
#pragma once

#include "objects.h"

struct TRITONSERVER_ResponseAllocator {
  TRITONSERVER_ResponseAllocatorAllocFn_t allocate = nullptr;
  TRITONSERVER_ResponseAllocatorReleaseFn_t release = nullptr;
  TRITONSERVER_ResponseAllocatorStartFn_t start = nullptr;
  TRITONSERVER_ResponseAllocatorBufferAttributesFn_t attributes = nullptr;
  TRITONSERVER_ResponseAllocatorQueryFn_t query = nullptr;
};

namespace tritonpy {

struct CallInput {
  TensorSpec spec;
  std::vector<std::pair<const char*, size_t>> data;  // the caller's buffers, in order
  std::string joined;

  // Make one buffer of several.
  void join() {
    if (data.size() < 2) return;
    joined.clear();
    for (const auto& part : data) joined.append(part.first, part.second);
    data = {{joined.data(), joined.size()}};
  }
};

struct CallOutput {
  TensorSpec spec;
  void* buffer = nullptr;
  size_t byte_size = 0;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  void* buffer_userp = nullptr;
};

using Call = TRITONSERVER_InferenceRequest;
using CallResponse = TRITONSERVER_InferenceResponse;

}  // namespace tritonpy

struct TRITONSERVER_InferenceRequest {
  int64_t model = 0;   // the number of the calling model
  int64_t number = 0;  // of the call
  std::string name;
  int64_t version = -1;
  std::string id;
  uint32_t flags = 0;
  uint64_t correlation_id = 0;
  bool has_correlation_text = false;
  std::string correlation_text;
  uint64_t priority = 0;
  uint64_t timeout_us = 0;
  std::vector<tritonpy::CallInput> inputs;
  std::set<std::string> outputs;
  tritonpy::Parameters parameters;
  TRITONSERVER_InferenceRequestReleaseFn_t release = nullptr;
  void* release_userp = nullptr;
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  void* allocator_userp = nullptr;
  TRITONSERVER_InferenceResponseCompleteFn_t respond = nullptr;
  void* response_userp = nullptr;
  std::atomic<bool> running{false};
  std::atomic<bool> cancelled{false};
};

struct TRITONSERVER_InferenceResponse {
  ~TRITONSERVER_InferenceResponse() {
    for (tritonpy::CallOutput& output : outputs) {
      if (allocator && allocator->release) {
        TRITONSERVER_ErrorDelete(allocator->release(allocator, output.buffer, output.buffer_userp,
                                                    output.byte_size, output.memory_type,
                                                    output.memory_type_id));
      }
    }
  }

  std::string model_name;
  int64_t model_version = -1;
  std::string id;
  int64_t code = -1;
  std::string message;
  std::vector<tritonpy::CallOutput> outputs;
  tritonpy::Parameters parameters;
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
};
