// The queue of events for Python, and the responses on their way to it.
#include <chrono>
#include <cstdlib>

#include "objects.h"

namespace tritonpy {

thread_local TRITONBACKEND_ModelInstance* executing_instance = nullptr;

namespace {
thread_local int64_t model_of_thread = 0;
std::atomic<int64_t> last_model{0};
}  // namespace

int64_t current_model() { return model_of_thread ? model_of_thread : last_model.load(); }

ModelScope::ModelScope(int64_t model) : before_(model_of_thread) {
  model_of_thread = model;
  if (model > 0) last_model = model;
}

ModelScope::~ModelScope() { model_of_thread = before_; }

TRITONSERVER_Error* error(TRITONSERVER_Error_Code code, const std::string& message) {
  return new TRITONSERVER_Error{code, message};
}

uint64_t steady_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Memory allocate(size_t size) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, size ? size : 1) != 0) return nullptr;
  return Memory(memory);
}

std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += static_cast<char>(c);
    } else if (c < 0x20) {
      char escaped[8];
      snprintf(escaped, sizeof escaped, "\\u%04x", c);
      result += escaped;
    } else {
      result += static_cast<char>(c);
    }
  }
  return result + "\"";
}

std::string json_parameters(const TRITONSERVER_Parameter* const* parameters, uint64_t count) {
  std::string result = "[";
  for (uint64_t i = 0; i < count; ++i) {
    const Parameter& each = *parameters[i];
    if (i) result += ",";
    result += "[" + json_text(each.name) + "," + std::to_string(each.type) + ",";
    switch (each.type) {
      case TRITONSERVER_PARAMETER_INT:
        result += std::to_string(each.integer);
        break;
      case TRITONSERVER_PARAMETER_BOOL:
        result += each.boolean ? "true" : "false";
        break;
      case TRITONSERVER_PARAMETER_DOUBLE:
        result += std::to_string(each.real);
        break;
      case TRITONSERVER_PARAMETER_BYTES: {  // any bytes: hexadecimal
        static const char digits[] = "0123456789abcdef";
        result += '"';
        for (unsigned char c : each.text) {
          result += digits[c >> 4];
          result += digits[c & 15];
        }
        result += '"';
        break;
      }
      default:
        result += json_text(each.text);
    }
    result += "]";
  }
  return result + "]";
}

AnswerOwner::~AnswerOwner() {
  Answer& answer = *answer_;
  {
    std::lock_guard<std::mutex> lock(answer.mutex);
    if (answer.final_sent) return;
    answer.final_sent = true;
  }
  Event event{Event::response};
  event.tag = answer.tag;
  event.flags = TRITONSERVER_RESPONSE_COMPLETE_FINAL;
  event.code = TRITONSERVER_ERROR_INTERNAL;
  event.text = "the backend released the request without a final response";
  event.answer = answer_;
  Host::get().respond(std::move(event));
}

Host& Host::get() {
  static Host* host = new Host;  // never destroyed: threads of backends may outlive main()
  return *host;
}

void Host::push(Event event) {
  constexpr size_t kMostLogEvents = 10000;
  {
    std::lock_guard<std::mutex> lock(mutex);
    // A backend that logs faster than Python writes must not fill the memory.
    if (event.kind == Event::log && events.size() > kMostLogEvents) return;
    events.push_back(std::move(event));
  }
  ready.notify_one();
}

void Host::respond(Event event) {
  TRITONBACKEND_ModelInstance& instance = *event.answer->instance;
  event.owner = instance.number;
  bool arm = false;
  {
    std::unique_lock<std::mutex> lock(instance.mutex);
    if (event.flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) {
      instance.open.erase(event.tag);
    }
    if (instance.closed && event.kind != Event::release) return;
    if (event.tag < 0) return;  // a request that only fills a slot of a batch
    if (executing_instance == &instance && instance.holding) {
      if (instance.held.empty()) instance.held_since_ns = steady_ns();
      instance.held.push_back(std::move(event));
      arm = true;
    } else {
      lock.unlock();
      push(std::move(event));
    }
  }
  // Wakes the waiting thread once; it then looks after held responses until none remain.
  if (arm && !armed.exchange(true)) ready.notify_one();
}

void Host::queue_held() {
  constexpr uint64_t kMostHeldNs = 1000000;
  armed = false;  // before the look: a response that is held from now on arms it again
  std::vector<std::shared_ptr<TRITONBACKEND_ModelInstance>> found;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto& each : instances) found.push_back(each.second);
  }
  bool busy = false;
  for (const auto& instance : found) {
    std::lock_guard<std::mutex> lock(instance->mutex);
    if (!instance->holding) continue;
    busy = true;  // stays armed while executions follow each other
    if (!instance->model->states.empty()) continue;  // the states of a batch are sent as a whole
    if (instance->held.empty() || steady_ns() - instance->held_since_ns < kMostHeldNs) continue;
    instance->holding = false;
    std::lock_guard<std::mutex> queue_lock(mutex);
    for (Event& event : instance->held) events.push_back(std::move(event));
    instance->held.clear();
  }
  if (busy) armed = true;
}

TRITONSERVER_Error* Host::query(const std::string& verb, const std::string& arguments,
                              std::string* result) {
  // Shared: Python may answer after the caller stopped waiting.
  auto query = std::make_shared<Query>();
  query->verb = verb;
  query->arguments = arguments;
  Event event{Event::query};
  event.owner = current_model();
  event.pointer = new std::shared_ptr<Query>(query);
  push(std::move(event));
  std::unique_lock<std::mutex> lock(query->mutex);
  while (!query->done) {
    query->answered.wait_for(lock, std::chrono::milliseconds(200));
    if (!query->done && !serving) {
      return error(TRITONSERVER_ERROR_UNAVAILABLE, verb + ": the server is shutting down");
    }
  }
  if (query->code >= 0) {
    return error(static_cast<TRITONSERVER_Error_Code>(query->code), query->text);
  }
  if (result) *result = query->text;
  return nullptr;
}

}  // namespace tritonpy
