// What the opaque pointers of Triton's C interface point to in this library.
//
// Everything that a backend can reach lives here, outside of the Python interpreter: no function of
// the interface waits for Python's lock. Python meets these objects only at the edge (edge.cc).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "triton/core/tritonbackend.h"

struct TRITONSERVER_Error {
  TRITONSERVER_Error_Code code;
  std::string message;
};

struct TRITONSERVER_Message {
  std::string text;  // JSON
};

struct TRITONSERVER_BufferAttributes {
  size_t byte_size = 0;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  void* cuda_ipc_handle = nullptr;
};

// A named value of a request, a response, a label or a call.
struct TRITONSERVER_Parameter {
  std::string name;
  TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
  std::string text;  // of STRING and BYTES
  int64_t integer = 0;
  bool boolean = false;
  double real = 0;

  const void* value() const {
    switch (type) {
      case TRITONSERVER_PARAMETER_INT:
        return &integer;
      case TRITONSERVER_PARAMETER_BOOL:
        return &boolean;
      case TRITONSERVER_PARAMETER_DOUBLE:
        return &real;
      default:
        return text.c_str();
    }
  }
};

namespace tritonpy {

using Parameter = TRITONSERVER_Parameter;
using Parameters = std::vector<Parameter>;

TRITONSERVER_Error* error(TRITONSERVER_Error_Code code, const std::string& message);

// Memory that is freed with free(), aligned to 64 bytes.
struct FreeMemory {
  void operator()(void* memory) const { free(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;
Memory allocate(size_t size);

struct TensorSpec {
  std::string name;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
};

// The inputs and requested outputs of many requests, which differ only in their data.
struct Layout {
  std::vector<TensorSpec> inputs;
  std::vector<std::string> outputs;
};

// The entry points of a backend's library. A library is never closed: frameworks leave threads and
// destructors behind.
struct Library {
  using BackendFn = TRITONSERVER_Error* (*)(TRITONBACKEND_Backend*);
  using ModelFn = TRITONSERVER_Error* (*)(TRITONBACKEND_Model*);
  using InstanceFn = TRITONSERVER_Error* (*)(TRITONBACKEND_ModelInstance*);
  BackendFn initialize = nullptr;
  BackendFn finalize = nullptr;
  TRITONSERVER_Error* (*attributes)(TRITONBACKEND_Backend*, TRITONBACKEND_BackendAttribute*) =
      nullptr;
  ModelFn model_initialize = nullptr;
  ModelFn model_finalize = nullptr;
  InstanceFn instance_initialize = nullptr;
  InstanceFn instance_finalize = nullptr;
  TRITONSERVER_Error* (*execute)(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request**,
                                 uint32_t) = nullptr;
  InstanceFn instance_ready = nullptr;
};

}  // namespace tritonpy

struct TRITONBACKEND_BackendAttribute {
  struct InstanceGroup {
    TRITONSERVER_InstanceGroupKind kind;
    uint64_t count;
    std::vector<uint64_t> devices;
  };
  std::vector<InstanceGroup> preferred_groups;
  bool parallel_loading = false;
};

struct TRITONBACKEND_Backend {
  std::string name;
  std::string directory;
  TRITONSERVER_Message config;
  tritonpy::Library library;
  TRITONBACKEND_ExecutionPolicy policy = TRITONBACKEND_EXECUTION_BLOCKING;
  TRITONBACKEND_BackendAttribute attributes;
  void* state = nullptr;
  std::mutex loading;  // held while an instance loads, unless they may load at the same time
  std::mutex devices_mutex;
  std::map<std::pair<int, int>, std::unique_ptr<std::mutex>> devices;  // of blocking executions
};

struct TRITONSERVER_Server {
  int64_t model = 0;  // the number of the model whose engine answers
};

struct TRITONBACKEND_Model {
  TRITONBACKEND_Backend* backend = nullptr;
  std::string name;
  uint64_t version = 0;
  std::string repository;
  std::string config;  // JSON
  bool auto_complete = false;
  bool initializing = false;
  bool config_changed = false;
  bool blocks_device = false;  // the execution policy applies
  std::vector<std::string> states;
  TRITONSERVER_Server server;
  void* state = nullptr;
  std::mutex usage_mutex;
  std::vector<TRITONSERVER_BufferAttributes> usage;
};

namespace tritonpy {

struct Answer;

struct OutputBuffer {
  TensorSpec spec;
  Memory memory;
  TRITONSERVER_BufferAttributes attributes;
};

// One event for Python. Events of one request keep their order.
struct Event {
  enum Kind : int64_t {
    response = 1,
    release,
    reschedule,
    state,
    watch,
    log,
    metric,
    query,
    cancel_call,
    trace,
  };
  Kind kind;
  int64_t owner = 0;  // the number of an instance or model
  int64_t tag = 0;    // of a request; the level of a log message; the number of a metric
  int64_t flags = 0;
  int64_t code = -1;  // of an error
  std::string text;
  double value = 0;
  void* pointer = nullptr;
  std::vector<std::unique_ptr<TRITONBACKEND_Output>> outputs;
  Parameters parameters;
  std::shared_ptr<Answer> answer;
};

}  // namespace tritonpy

struct TRITONBACKEND_ModelInstance {
  int64_t number = 0;
  TRITONBACKEND_Model* model = nullptr;
  std::string name;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device = 0;
  bool passive = false;
  bool decoupled = false;
  TRITONSERVER_Message host_policy;
  std::string policy_name;
  std::vector<std::string> profiles;
  std::vector<std::pair<std::string, int64_t>> secondary_devices;
  void* state = nullptr;

  std::mutex usage_mutex;
  std::vector<TRITONSERVER_BufferAttributes> usage;

  // Final responses that the executing thread sends are held until its execution returns, so that
  // they cost no wake-up. The waiting thread moves them to the queue if the execution goes on.
  std::mutex mutex;  // of what follows
  bool executing = false;
  bool holding = false;
  std::vector<tritonpy::Event> held;
  uint64_t held_since_ns = 0;
  std::map<int64_t, std::shared_ptr<tritonpy::Answer>> open;  // without a final response, by tag
  std::unordered_set<TRITONBACKEND_Request*> unreleased;
  bool closed = false;
  // Set by the statistics that the backend reports for the running execution; steady clock.
  std::atomic<uint64_t> compute_start_ns{0};
  std::atomic<uint64_t> compute_end_ns{0};
};

namespace tritonpy {

// The way of responses to one request. Request, factories and unsent responses share it; when the
// last of them is gone without a final response, the request fails.
struct Answer {
  Answer(std::shared_ptr<TRITONBACKEND_ModelInstance> instance, int64_t tag)
      : instance(std::move(instance)), tag(tag) {}

  const std::shared_ptr<TRITONBACKEND_ModelInstance> instance;
  const int64_t tag;
  std::atomic<bool> cancelled{false};
  std::atomic<bool> watched{false};  // the backend asks whether the request is cancelled
  std::mutex mutex;                  // of what follows
  std::condition_variable capacity;
  bool final_sent = false;
  bool blocked = false;  // the client has no room for further responses
  int queued = 0;        // responses that Python has not taken
};

// Owns an answer on behalf of the backend.
class AnswerOwner {
 public:
  explicit AnswerOwner(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  ~AnswerOwner();
  const std::shared_ptr<Answer>& get() const { return answer_; }

 private:
  std::shared_ptr<Answer> answer_;
};
using OwnedAnswer = std::shared_ptr<AnswerOwner>;

}  // namespace tritonpy

struct TRITONBACKEND_Input {
  const tritonpy::TensorSpec* spec = nullptr;
  const void* data = nullptr;
  TRITONSERVER_BufferAttributes attributes;
};

struct TRITONSERVER_InferenceTrace {
  TRITONBACKEND_Request* request = nullptr;
  std::string context;
};

struct TRITONBACKEND_Request {
  TRITONBACKEND_ModelInstance* instance = nullptr;
  int64_t tag = 0;
  std::string id;
  uint32_t flags = 0;
  uint64_t correlation_id = 0;
  bool has_correlation_text = false;
  std::string correlation_text;
  uint64_t timeout_us = 0;
  bool traced = false;
  TRITONSERVER_InferenceTrace trace;
  std::shared_ptr<tritonpy::Layout> layout;
  std::vector<TRITONBACKEND_Input> inputs;
  tritonpy::Parameters parameters;
  tritonpy::OwnedAnswer owner;
  std::vector<std::unique_ptr<TRITONBACKEND_State>> states;
  bool released = false;
};

struct TRITONBACKEND_Output {
  tritonpy::OutputBuffer buffer;
};

struct TRITONBACKEND_Response {
  tritonpy::OwnedAnswer owner;
  std::vector<std::unique_ptr<TRITONBACKEND_Output>> outputs;
  tritonpy::Parameters parameters;
  bool sent = false;
};

struct TRITONBACKEND_ResponseFactory {
  tritonpy::OwnedAnswer owner;
};

struct TRITONBACKEND_State {
  TRITONBACKEND_Request* request = nullptr;
  tritonpy::OutputBuffer buffer;
};

struct TRITONBACKEND_MemoryManager {};

struct TRITONBACKEND_ModelInstanceResponseStatistics {
  TRITONBACKEND_ModelInstance* instance = nullptr;
  TRITONBACKEND_ResponseFactory* factory = nullptr;
  uint64_t response_start = 0;
  uint64_t compute_output_start = 0;
  uint64_t response_end = 0;
  TRITONSERVER_Error* error = nullptr;
};

namespace tritonpy {

// Objects that the backend has ended, kept as empty shells for a while: a second use of the pointer
// finds the shell and is an error instead of a use after free.
template <typename T>
class EndedObjects {
 public:
  void add(T* object) {
    std::unique_ptr<T> oldest;
    std::lock_guard<std::mutex> lock(mutex_);
    shells_.emplace_back(object);
    if (shells_.size() > 256) {
      oldest = std::move(shells_.front());
      shells_.pop_front();
    }
  }

 private:
  std::mutex mutex_;
  std::deque<std::unique_ptr<T>> shells_;
};

// A query to the server, which Python answers while the calling thread waits.
struct Query {
  std::string verb;
  std::string arguments;  // JSON
  std::mutex mutex;
  std::condition_variable answered;
  bool done = false;
  int64_t code = -1;
  std::string text;  // the result, or the message of the error
};

// The queue of events, read by one thread of Python.
class Host {
 public:
  static Host& get();

  void push(Event event);
  // Hold a final response of the executing thread, if that is allowed; otherwise queue it.
  void respond(Event event);
  // Queue the held responses of executions that go on; called by the waiting thread now and then.
  void queue_held();
  // Send a query to Python and wait. Returns an error if no thread answers.
  TRITONSERVER_Error* query(const std::string& verb, const std::string& arguments,
                          std::string* result);

  std::mutex mutex;
  std::condition_variable ready;
  std::deque<Event> events;
  std::atomic<bool> serving{false};
  std::atomic<bool> armed{false};  // some response is held
  std::atomic<bool> verbose{false};
  std::map<int64_t, std::shared_ptr<TRITONBACKEND_ModelInstance>> instances;  // guarded by `mutex`

  EndedObjects<TRITONBACKEND_Request> requests;
  EndedObjects<TRITONBACKEND_Response> responses;
};

// The model whose code runs on this thread, or the one that was opened last.
int64_t current_model();
class ModelScope {
 public:
  explicit ModelScope(int64_t model);
  ~ModelScope();

 private:
  int64_t before_;
};
// The instance that executes on this thread, or null.
extern thread_local TRITONBACKEND_ModelInstance* executing_instance;

uint64_t steady_ns();

// Text of a JSON string literal, with quotes.
std::string json_text(const std::string& text);
std::string json_parameters(const TRITONSERVER_Parameter* const* parameters, uint64_t count);

void release_request(TRITONBACKEND_Request* request);

}  // namespace tritonpy
