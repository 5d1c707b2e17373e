// The edge between Python and the backends: a few functions that Python calls through ctypes.
//
// Numbers travel in arrays of 64-bit words, texts and small outputs in one array of bytes. Python
// enters an execution once and leaves it once, for any number of requests. Formats are described
// where they are read and written; `wire.py` has the other side.
#include "edge.h"

#include <chrono>
#include <cstddef>
#include <tuple>
#include <unordered_map>

#include "calls.h"

using tritonpy::Answer;
using tritonpy::AnswerOwner;
using tritonpy::Event;
using tritonpy::find;
using tritonpy::guarded;
using tritonpy::Host;
using tritonpy::Layout;
using tritonpy::message;
using tritonpy::Reader;
using tritonpy::read_request;
using tritonpy::status;
using tritonpy::Writer;
using Instance = TRITONBACKEND_ModelInstance;

namespace tritonpy {

thread_local std::string message;

TRITONSERVER_Error* open_library(const char* path, void** library) {
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*library) return nullptr;
  return error(TRITONSERVER_ERROR_NOT_FOUND,
               std::string("unable to load shared library: ") + dlerror());
}

TRITONBACKEND_Request* read_request(Reader* reader, const std::shared_ptr<Instance>& instance) {
  auto request = std::make_unique<TRITONBACKEND_Request>();
  request->instance = instance.get();
  request->tag = reader->word();
  request->layout = *reader->pointer<std::shared_ptr<Layout>*>();
  request->flags = static_cast<uint32_t>(reader->word());
  request->correlation_id = static_cast<uint64_t>(reader->word());
  request->has_correlation_text = reader->word();
  request->correlation_text = reader->text();
  request->timeout_us = static_cast<uint64_t>(reader->word());
  request->id = reader->text();
  request->traced = reader->word();
  request->trace.context = reader->text();
  request->trace.request = request.get();
  reader->parameters(&request->parameters);
  request->inputs.reserve(request->layout->inputs.size());
  for (const TensorSpec& spec : request->layout->inputs) {
    TRITONBACKEND_Input input;
    input.spec = &spec;
    input.data = reader->data();
    input.attributes.byte_size = static_cast<size_t>(reader->word());
    request->inputs.push_back(input);
  }
  auto answer = std::make_shared<Answer>(instance, request->tag);
  request->owner = std::make_shared<AnswerOwner>(answer);
  std::lock_guard<std::mutex> lock(instance->mutex);
  if (request->tag >= 0) instance->open[request->tag] = answer;
  instance->unreleased.insert(request.get());
  return request.release();
}

}  // namespace tritonpy

namespace {

constexpr size_t kMostInlineBytes = 16384;  // larger outputs are passed as memory
constexpr int64_t kReleased = 4;            // a flag of a response: its request is released

// Numbers for the outputs that backends send again and again, so that Python reads names and shapes
// once.
class KnownTensors {
 public:
  // Return the number of a tensor, or -1 if too many are known.
  int64_t number(const tritonpy::TensorSpec& spec) {
    constexpr size_t kMost = 4096;
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = numbers_.find(spec);
    if (found != numbers_.end()) return found->second;
    if (numbers_.size() >= kMost) return -1;
    const int64_t number = static_cast<int64_t>(numbers_.size());
    found = numbers_.emplace(spec, number).first;
    specs_.push_back(&found->first);
    return number;
  }
  const tritonpy::TensorSpec& spec(int64_t number) {
    std::lock_guard<std::mutex> lock(mutex_);
    return *specs_[static_cast<size_t>(number)];
  }

 private:
  struct Less {
    bool operator()(const tritonpy::TensorSpec& a, const tritonpy::TensorSpec& b) const {
      return std::tie(a.datatype, a.shape, a.name) < std::tie(b.datatype, b.shape, b.name);
    }
  };
  std::mutex mutex_;
  std::map<tritonpy::TensorSpec, int64_t, Less> numbers_;
  std::vector<const tritonpy::TensorSpec*> specs_;
};

KnownTensors& known_tensors() {
  static auto* known = new KnownTensors;
  return *known;
}

// kind, owner, tag; unless the kind says it all: flags, code, text, pointer, bits of the value,
// parameters, outputs. An output is the number of a known tensor, or -1 and the tensor; then 1 and
// bytes, or 0, address and size. A query's text is its verb, a line feed and its arguments.
void write(Writer* writer, const Event& event) {
  writer->word(event.kind);
  writer->word(event.owner);
  writer->word(event.tag);
  if (event.kind == Event::release || event.kind == Event::reschedule ||
      event.kind == Event::watch || event.kind == Event::cancel_call) {
    return;
  }
  writer->word(event.flags);
  writer->word(event.code);
  if (event.kind == Event::query) {
    const auto& query = **static_cast<std::shared_ptr<tritonpy::Query>*>(event.pointer);
    writer->text(query.verb + "\n" + query.arguments);
  } else {
    writer->text(event.text);
  }
  writer->word(static_cast<int64_t>(reinterpret_cast<intptr_t>(event.pointer)));
  int64_t bits;
  memcpy(&bits, &event.value, sizeof bits);
  writer->word(bits);
  writer->parameters(event.parameters);
  writer->word(static_cast<int64_t>(event.outputs.size()));
  for (const auto& output : event.outputs) {
    const tritonpy::OutputBuffer& buffer = output->buffer;
    const size_t size = buffer.attributes.byte_size;
    const int64_t number = known_tensors().number(buffer.spec);
    writer->word(number);
    if (number < 0) writer->spec(buffer.spec);
    writer->word(size <= kMostInlineBytes);
    if (size <= kMostInlineBytes) {
      writer->bytes(buffer.memory.get(), size, 16);
    } else {
      writer->word(static_cast<int64_t>(reinterpret_cast<intptr_t>(buffer.memory.get())));
      writer->word(static_cast<int64_t>(size));
    }
  }
}

// Python has the event: large outputs are its own now, and the sender may go on.
void hand_to_python(Event* event) {
  for (const auto& output : event->outputs) {
    if (output->buffer.attributes.byte_size > kMostInlineBytes) output->buffer.memory.release();
  }
  if (event->kind == Event::response && event->answer &&
      !(event->flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)) {
    std::lock_guard<std::mutex> lock(event->answer->mutex);
    --event->answer->queued;
    event->answer->capacity.notify_all();
  }
}

void set_cancelled(Answer* answer) {
  std::lock_guard<std::mutex> lock(answer->mutex);
  answer->cancelled = true;
  answer->capacity.notify_all();
}

std::shared_ptr<Answer> find_answer(Instance* instance, int64_t tag) {
  std::lock_guard<std::mutex> lock(instance->mutex);
  auto found = instance->open.find(tag);
  return found == instance->open.end() ? nullptr : found->second;
}

std::mutex* device_mutex(Instance* instance) {
  TRITONBACKEND_Backend* backend = instance->model->backend;
  std::lock_guard<std::mutex> lock(backend->devices_mutex);
  auto& mutex = backend->devices[{instance->kind, instance->device}];
  if (!mutex) mutex = std::make_unique<std::mutex>();
  return mutex.get();
}

// The execution failed: the requests that the backend did not release end without a response of
// theirs, since Python fails all of them.
void take_back(const std::vector<TRITONBACKEND_Request*>& requests) {
  for (TRITONBACKEND_Request* request : requests) {
    if (request->released) continue;
    const std::shared_ptr<Answer> answer = request->owner->get();
    {
      std::lock_guard<std::mutex> lock(answer->mutex);
      answer->final_sent = true;
    }
    {
      std::lock_guard<std::mutex> lock(request->instance->mutex);
      request->instance->open.erase(request->tag);
    }
    tritonpy::release_request(request);
  }
}

int64_t write_usage(const std::vector<TRITONSERVER_BufferAttributes>& usage, int64_t* words,
                    int64_t most) {
  int64_t count = 0;
  for (const TRITONSERVER_BufferAttributes& each : usage) {
    if (count == most) break;
    words[3 * count] = each.memory_type;
    words[3 * count + 1] = each.memory_type_id;
    words[3 * count + 2] = static_cast<int64_t>(each.byte_size);
    ++count;
  }
  return count;
}

// Write the number of bytes to the first word and return that of words, or -1 with what is needed.
int64_t finish(const Writer& writer, int64_t* out) {
  out[0] = writer.byte_count;
  if (writer.fits()) return writer.word_count;
  out[0] = writer.word_count;
  out[1] = writer.byte_count;
  return -1;
}

// Mark responses whose requests were released as well, instead of an event for each release.
void merge_releases(std::vector<Event>* events) {
  std::unordered_map<int64_t, Event*> finals;
  for (Event& event : *events) {
    if (event.kind == Event::response && (event.flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)) {
      finals[event.tag] = &event;
    }
  }
  auto merged = [&](const Event& event) {
    if (event.kind != Event::release) return false;
    auto found = finals.find(event.tag);
    if (found == finals.end()) return false;
    found->second->flags |= kReleased;
    return true;
  };
  // Marks first: moving events would make the pointers invalid.
  std::vector<bool> gone(events->size());
  for (size_t i = 0; i < events->size(); ++i) gone[i] = merged((*events)[i]);
  size_t kept = 0;
  for (size_t i = 0; i < events->size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) (*events)[kept] = std::move((*events)[i]);
    ++kept;
  }
  events->erase(events->begin() + static_cast<std::ptrdiff_t>(kept), events->end());
}

Instance* of(void* handle) { return static_cast<std::shared_ptr<Instance>*>(handle)->get(); }

}  // namespace

extern "C" {

TRITON_HOST const char* tritonpy_message() { return message.c_str(); }

TRITON_HOST void tritonpy_free(void* memory) { free(memory); }

TRITON_HOST void tritonpy_serve(int64_t serving, int64_t verbose) {
  Host::get().serving = serving;
  Host::get().verbose = verbose;
  Host::get().ready.notify_all();
}

// Load a library and initialize its backend. Returns -1 or the code of an error, as all functions
// that name no other result.
TRITON_HOST int64_t tritonpy_backend_open(const char* name, const char* path,
                                          const char* directory, const char* config,
                                          int64_t model, void** result) {
  tritonpy::ModelScope scope(model);
  void* library = nullptr;
  if (TRITONSERVER_Error* failure = tritonpy::open_library(path, &library)) return status(failure);
  auto backend = std::make_unique<TRITONBACKEND_Backend>();
  backend->name = name;
  backend->directory = directory;
  backend->config.text = config;
  tritonpy::Library& entry = backend->library;
  find(library, "TRITONBACKEND_Initialize", &entry.initialize);
  find(library, "TRITONBACKEND_Finalize", &entry.finalize);
  find(library, "TRITONBACKEND_GetBackendAttribute", &entry.attributes);
  find(library, "TRITONBACKEND_ModelInitialize", &entry.model_initialize);
  find(library, "TRITONBACKEND_ModelFinalize", &entry.model_finalize);
  find(library, "TRITONBACKEND_ModelInstanceInitialize", &entry.instance_initialize);
  find(library, "TRITONBACKEND_ModelInstanceFinalize", &entry.instance_finalize);
  find(library, "TRITONBACKEND_ModelInstanceExecute", &entry.execute);
  find(library, "TRITONBACKEND_ModelInstanceReady", &entry.instance_ready);
  if (!entry.execute) {
    return status(tritonpy::error(
        TRITONSERVER_ERROR_NOT_FOUND,
        std::string("unable to find required entrypoint 'TRITONBACKEND_ModelInstanceExecute' in "
                    "shared library: ") +
            path));
  }
  TRITONBACKEND_Backend* raw = backend.get();
  if (entry.initialize) {
    const int64_t code =
        status(guarded("TRITONBACKEND_Initialize", [&] { return entry.initialize(raw); }));
    if (code >= 0) return code;
  }
  if (entry.attributes) {
    TRITONBACKEND_BackendAttribute latest;
    TRITONSERVER_Error* failure = guarded("TRITONBACKEND_GetBackendAttribute",
                                          [&] { return entry.attributes(raw, &latest); });
    if (!failure) backend->attributes = std::move(latest);
    TRITONSERVER_ErrorDelete(failure);
  }
  *result = backend.release();
  return -1;
}

// The preferred instance groups: count; kind, count, number of devices, devices.
TRITON_HOST int64_t tritonpy_backend_groups(void* handle, int64_t* words, int64_t capacity) {
  Writer writer(words, capacity, nullptr, 0);
  const auto& groups = static_cast<TRITONBACKEND_Backend*>(handle)->attributes.preferred_groups;
  writer.word(static_cast<int64_t>(groups.size()));
  for (const auto& group : groups) {
    writer.word(group.kind);
    writer.word(static_cast<int64_t>(group.count));
    writer.word(static_cast<int64_t>(group.devices.size()));
    for (uint64_t device : group.devices) writer.word(static_cast<int64_t>(device));
  }
  return writer.fits() ? writer.word_count : 0;
}

TRITON_HOST int64_t tritonpy_backend_close(void* handle) {
  std::unique_ptr<TRITONBACKEND_Backend> backend(static_cast<TRITONBACKEND_Backend*>(handle));
  if (!backend->library.finalize) return -1;
  return status(guarded("TRITONBACKEND_Finalize",
                        [&] { return backend->library.finalize(backend.get()); }));
}

// `states` are the names of the model's states, one per line.
TRITON_HOST int64_t tritonpy_model_open(void* backend, const char* name, int64_t version,
                                        const char* repository, const char* config,
                                        const char* states, int64_t auto_complete,
                                        int64_t sequence_batching, int64_t number,
                                        void** result) {
  tritonpy::ModelScope scope(number);
  auto model = std::make_unique<TRITONBACKEND_Model>();
  model->backend = static_cast<TRITONBACKEND_Backend*>(backend);
  model->name = name;
  model->version = static_cast<uint64_t>(version);
  model->repository = repository;
  model->config = config;
  model->auto_complete = auto_complete;
  model->blocks_device =
      model->backend->policy == TRITONBACKEND_EXECUTION_DEVICE_BLOCKING && !sequence_batching;
  model->server.model = number;
  for (const char* rest = states; *rest;) {
    const char* end = strchrnul(rest, '\n');
    model->states.emplace_back(rest, end);
    rest = *end ? end + 1 : end;
  }
  const tritonpy::Library& entry = model->backend->library;
  if (entry.model_initialize) {
    model->initializing = true;
    const int64_t code = status(guarded("TRITONBACKEND_ModelInitialize",
                                        [&] { return entry.model_initialize(model.get()); }));
    model->initializing = false;
    if (code >= 0) return code;
  }
  *result = model.release();
  return -1;
}

// The configuration that the backend set, or null if it changed nothing.
TRITON_HOST const char* tritonpy_model_config(void* handle) {
  const auto* model = static_cast<TRITONBACKEND_Model*>(handle);
  return model->config_changed ? model->config.c_str() : nullptr;
}

// Replace the configuration, for a model that was opened to complete it.
TRITON_HOST void tritonpy_model_set_config(void* handle, const char* config) {
  static_cast<TRITONBACKEND_Model*>(handle)->config = config;
}

TRITON_HOST int64_t tritonpy_model_close(void* handle) {
  std::unique_ptr<TRITONBACKEND_Model> model(static_cast<TRITONBACKEND_Model*>(handle));
  tritonpy::ModelScope scope(model->server.model);
  const auto finalize = model->backend->library.model_finalize;
  if (!finalize) return -1;
  return status(
      guarded("TRITONBACKEND_ModelFinalize", [&] { return finalize(model.get()); }));
}

// kind, device, passive, decoupled, name, host policy (name, JSON), profiles, secondary devices.
TRITON_HOST int64_t tritonpy_instance_open(void* model_handle, int64_t number,
                                           const int64_t* words, const char* text,
                                           void** result) {
  auto* model = static_cast<TRITONBACKEND_Model*>(model_handle);
  tritonpy::ModelScope scope(model->server.model);
  auto instance = std::make_shared<Instance>();
  Reader reader(words, text);
  instance->number = number;
  instance->model = model;
  instance->kind = static_cast<TRITONSERVER_InstanceGroupKind>(reader.word());
  instance->device = static_cast<int32_t>(reader.word());
  instance->passive = reader.word();
  instance->decoupled = reader.word();
  instance->name = reader.text();
  instance->policy_name = reader.text();
  instance->host_policy.text = reader.text();
  for (int64_t left = reader.word(); left > 0; --left) instance->profiles.push_back(reader.text());
  for (int64_t left = reader.word(); left > 0; --left) {
    std::string kind = reader.text();
    instance->secondary_devices.emplace_back(std::move(kind), reader.word());
  }
  TRITONBACKEND_Backend* backend = model->backend;
  if (backend->library.instance_initialize) {
    std::unique_lock<std::mutex> lock(backend->loading, std::defer_lock);
    if (!backend->attributes.parallel_loading) lock.lock();
    const int64_t code = status(
        guarded("TRITONBACKEND_ModelInstanceInitialize",
                [&] { return backend->library.instance_initialize(instance.get()); }));
    if (code >= 0) return code;
  }
  {
    std::lock_guard<std::mutex> lock(Host::get().mutex);
    Host::get().instances[number] = instance;
  }
  *result = new std::shared_ptr<Instance>(instance);
  return -1;
}

TRITON_HOST int64_t tritonpy_instance_ready(void* handle) {
  Instance* instance = of(handle);
  const auto ready = instance->model->backend->library.instance_ready;
  if (!ready) return -1;
  return status(guarded("TRITONBACKEND_ModelInstanceReady", [&] { return ready(instance); }));
}

// Cancel what is unfinished and finalize the instance. Other threads may still use the handle.
TRITON_HOST int64_t tritonpy_instance_close(void* handle) {
  const std::shared_ptr<Instance> instance = *static_cast<std::shared_ptr<Instance>*>(handle);
  tritonpy::ModelScope scope(instance->model->server.model);
  {
    std::vector<std::shared_ptr<Answer>> open;
    {
      std::lock_guard<std::mutex> lock(instance->mutex);
      for (const auto& each : instance->open) open.push_back(each.second);
    }
    for (const auto& answer : open) set_cancelled(answer.get());
  }
  const auto finalize = instance->model->backend->library.instance_finalize;
  int64_t code = -1;
  if (finalize) {
    code = status(guarded("TRITONBACKEND_ModelInstanceFinalize",
                          [&] { return finalize(instance.get()); }));
  }
  std::unordered_set<TRITONBACKEND_Request*> unreleased;
  {
    std::lock_guard<std::mutex> lock(instance->mutex);
    instance->closed = true;
    instance->open.clear();
    unreleased.swap(instance->unreleased);
  }
  for (TRITONBACKEND_Request* request : unreleased) tritonpy::release_request(request);
  std::lock_guard<std::mutex> lock(Host::get().mutex);
  Host::get().instances.erase(instance->number);
  return code;
}

TRITON_HOST void tritonpy_instance_delete(void* handle) {
  delete static_cast<std::shared_ptr<Instance>*>(handle);
}

TRITON_HOST void* tritonpy_layout_new(const int64_t* words, const char* text) {
  Reader reader(words, text);  // inputs, requested outputs
  auto layout = std::make_shared<Layout>();
  for (int64_t left = reader.word(); left > 0; --left) layout->inputs.push_back(reader.spec());
  for (int64_t left = reader.word(); left > 0; --left) layout->outputs.push_back(reader.text());
  return new std::shared_ptr<Layout>(layout);
}

TRITON_HOST void tritonpy_layout_delete(void* layout) {
  delete static_cast<std::shared_ptr<Layout>*>(layout);
}

// Execute requests: count, requests. Writes the code of an error or -1, its text, the steady clock
// at the start and end of computing (0: not reported), the number of bytes, and events.
TRITON_HOST int64_t tritonpy_execute(void* handle, const int64_t* words, const char* text,
                                     int64_t* out, int64_t out_capacity, char* bytes,
                                     int64_t byte_capacity) {
  const std::shared_ptr<Instance> instance = *static_cast<std::shared_ptr<Instance>*>(handle);
  tritonpy::ModelScope scope(instance->model->server.model);
  Reader reader(words, text);
  std::vector<TRITONBACKEND_Request*> requests;
  for (int64_t left = reader.word(); left > 0; --left) {
    requests.push_back(read_request(&reader, instance));
  }
  std::unique_lock<std::mutex> device;
  if (instance->model->blocks_device) {
    device = std::unique_lock<std::mutex>(*device_mutex(instance.get()));
  }
  instance->compute_start_ns = instance->compute_end_ns = 0;
  {
    std::lock_guard<std::mutex> lock(instance->mutex);
    instance->holding = !instance->decoupled;
  }
  tritonpy::executing_instance = instance.get();
  // The array is the server's; a backend may change it.
  std::vector<TRITONBACKEND_Request*> array = requests;
  TRITONSERVER_Error* failure = guarded("TRITONBACKEND_ModelInstanceExecute", [&] {
    return instance->model->backend->library.execute(instance.get(), array.data(),
                                                     static_cast<uint32_t>(array.size()));
  });
  if (device) device.unlock();
  if (failure) take_back(requests);
  tritonpy::executing_instance = nullptr;
  std::vector<Event> events;
  {
    std::lock_guard<std::mutex> lock(instance->mutex);
    instance->holding = false;
    events.swap(instance->held);
  }
  merge_releases(&events);
  Writer writer(out, out_capacity, bytes, byte_capacity);
  writer.word(status(failure));
  writer.text(failure ? message : std::string());
  writer.word(static_cast<int64_t>(instance->compute_start_ns));
  writer.word(static_cast<int64_t>(instance->compute_end_ns));
  const int64_t place = writer.word_count;
  writer.word(0);
  size_t index = 0;
  for (; index < events.size(); ++index) {
    const int64_t words_before = writer.word_count, bytes_before = writer.byte_count;
    write(&writer, events[index]);
    if (!writer.fits()) {
      writer.undo(words_before, bytes_before);
      break;
    }
    hand_to_python(&events[index]);
  }
  for (; index < events.size(); ++index) Host::get().push(std::move(events[index]));
  out[place] = writer.byte_count;
  return writer.word_count;
}

// Wait for events, at most so long. Writes the number of bytes and as many events as fit; returns
// the number of words, 0 if there is no event. If the first event does not fit, returns -1 and
// writes the words and bytes that it needs.
TRITON_HOST int64_t tritonpy_wait(int64_t timeout_us, int64_t* out, int64_t out_capacity,
                                  char* bytes, int64_t byte_capacity) {
  Host& host = Host::get();
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::microseconds(timeout_us);
  std::unique_lock<std::mutex> lock(host.mutex);
  while (host.events.empty()) {
    if (!host.serving || std::chrono::steady_clock::now() >= deadline) return 0;
    if (!host.armed) {
      host.ready.wait_until(lock, deadline);
      continue;
    }
    host.ready.wait_for(lock, std::chrono::milliseconds(1));
    lock.unlock();
    host.queue_held();
    lock.lock();
  }
  Writer writer(out, out_capacity, bytes, byte_capacity);
  writer.word(0);
  while (!host.events.empty()) {
    Event& event = host.events.front();
    const int64_t words_before = writer.word_count, bytes_before = writer.byte_count;
    write(&writer, event);
    if (!writer.fits()) {
      if (words_before == 1) {
        out[0] = writer.word_count;
        out[1] = writer.byte_count;
        return -1;
      }
      writer.undo(words_before, bytes_before);
      break;
    }
    Event done = std::move(event);
    host.events.pop_front();
    hand_to_python(&done);
  }
  out[0] = writer.byte_count;
  return writer.word_count;
}

TRITON_HOST void tritonpy_cancel(void* handle, int64_t tag) {
  if (auto answer = find_answer(of(handle), tag)) set_cancelled(answer.get());
}

// Let the backend's sends of further responses wait, or go on.
TRITON_HOST void tritonpy_block(void* handle, int64_t tag, int64_t blocked) {
  auto answer = find_answer(of(handle), tag);
  if (!answer) return;
  std::lock_guard<std::mutex> lock(answer->mutex);
  answer->blocked = blocked;
  answer->capacity.notify_all();
}

// The number of requests without a final response.
TRITON_HOST int64_t tritonpy_open_requests(void* handle) {
  Instance* instance = of(handle);
  std::lock_guard<std::mutex> lock(instance->mutex);
  return static_cast<int64_t>(instance->open.size());
}

// Describe a known tensor; returns the number of words, or -1 with the words and bytes it needs.
TRITON_HOST int64_t tritonpy_tensor(int64_t number, int64_t* out, int64_t out_capacity,
                                    char* bytes, int64_t byte_capacity) {
  Writer writer(out, out_capacity, bytes, byte_capacity);
  writer.word(0);
  writer.spec(known_tensors().spec(number));
  return finish(writer, out);
}

// Reported memory: type, id, bytes of each entry; returns the number of entries.
TRITON_HOST int64_t tritonpy_instance_usage(void* handle, int64_t* words, int64_t most) {
  Instance* instance = of(handle);
  std::lock_guard<std::mutex> lock(instance->usage_mutex);
  return write_usage(instance->usage, words, most);
}

TRITON_HOST int64_t tritonpy_model_usage(void* handle, int64_t* words, int64_t most) {
  auto* model = static_cast<TRITONBACKEND_Model*>(handle);
  std::lock_guard<std::mutex> lock(model->usage_mutex);
  return write_usage(model->usage, words, most);
}

// Answer a query: code -1 and the result, or the error.
TRITON_HOST void tritonpy_answer(void* pointer, int64_t code, const char* text) {
  std::unique_ptr<std::shared_ptr<tritonpy::Query>> query(
      static_cast<std::shared_ptr<tritonpy::Query>*>(pointer));
  std::lock_guard<std::mutex> lock((*query)->mutex);
  (*query)->code = code;
  (*query)->text = text;
  (*query)->done = true;
  (*query)->answered.notify_all();
}

// Describe a call: model, version, id, flags, correlation id as number, whether it is a text, as
// text, priority, timeout, parameters, inputs (tensor, address, size), outputs. Returns the number
// of words, or -1 with the words and bytes that are needed.
TRITON_HOST int64_t tritonpy_call_read(void* handle, int64_t* out, int64_t out_capacity,
                                       char* bytes, int64_t byte_capacity) {
  const auto* call = static_cast<tritonpy::Call*>(handle);
  Writer writer(out, out_capacity, bytes, byte_capacity);
  writer.word(0);
  writer.text(call->name);
  writer.word(call->version);
  writer.text(call->id);
  writer.word(call->flags);
  writer.word(static_cast<int64_t>(call->correlation_id));
  writer.word(call->has_correlation_text);
  writer.text(call->correlation_text);
  writer.word(static_cast<int64_t>(call->priority));
  writer.word(static_cast<int64_t>(call->timeout_us));
  writer.parameters(call->parameters);
  writer.word(static_cast<int64_t>(call->inputs.size()));
  for (const tritonpy::CallInput& input : call->inputs) {
    writer.spec(input.spec);
    writer.word(input.data.empty() ? 0
                                   : static_cast<int64_t>(
                                         reinterpret_cast<intptr_t>(input.data[0].first)));
    writer.word(input.data.empty() ? 0 : static_cast<int64_t>(input.data[0].second));
  }
  writer.word(static_cast<int64_t>(call->outputs.size()));
  for (const std::string& output : call->outputs) writer.text(output);
  return finish(writer, out);
}

// Deliver a response to a call: flags, whether it has data, code of an error or -1, its text,
// model, version, id, parameters, outputs (tensor, place, size). The final one ends the handle.
TRITON_HOST void tritonpy_call_respond(void* handle, const int64_t* words, const char* text) {
  auto* call = static_cast<tritonpy::Call*>(handle);
  Reader reader(words, text);
  const auto flags = static_cast<uint32_t>(reader.word());
  const bool has_data = reader.word();
  auto response = std::make_unique<tritonpy::CallResponse>();
  response->code = reader.word();
  response->message = reader.text();
  response->model_name = reader.text();
  response->model_version = reader.word();
  response->id = reader.text();
  reader.parameters(&response->parameters);
  response->allocator = call->allocator;
  TRITONSERVER_ResponseAllocator* allocator = call->allocator;
  TRITONSERVER_Error* failure = nullptr;
  if (has_data && allocator->start) failure = allocator->start(allocator, call->allocator_userp);
  for (int64_t left = reader.word(); left > 0 && !failure; --left) {
    tritonpy::CallOutput output;
    output.spec = reader.spec();
    const void* data = reader.data();
    output.byte_size = static_cast<size_t>(reader.word());
    failure = allocator->allocate(allocator, output.spec.name.c_str(), output.byte_size,
                                  TRITONSERVER_MEMORY_CPU, 0, call->allocator_userp,
                                  &output.buffer, &output.buffer_userp, &output.memory_type,
                                  &output.memory_type_id);
    if (!failure && output.memory_type == TRITONSERVER_MEMORY_GPU) {
      failure = tritonpy::error(TRITONSERVER_ERROR_UNSUPPORTED,
                                "the outputs of calls cannot be in GPU memory");
    }
    if (failure) break;
    if (output.byte_size) memcpy(output.buffer, data, output.byte_size);
    response->outputs.push_back(std::move(output));
  }
  if (failure) response->code = status(failure), response->message = message;
  const bool final = flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL;
  const auto release = call->release;
  void* const release_userp = call->release_userp;
  if (final) call->running = false;
  call->respond(has_data || response->code >= 0 ? response.release() : nullptr, flags,
                call->response_userp);
  if (final && release) release(call, TRITONSERVER_REQUEST_RELEASE_ALL, release_userp);
}

}  // extern "C"
