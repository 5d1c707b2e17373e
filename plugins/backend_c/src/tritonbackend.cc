// The functions of TRITONBACKEND: what a backend learns of its models and requests, and how it
// answers.
#include <cstdlib>

#include "objects.h"

using tritonpy::AnswerOwner;
using tritonpy::error;
using tritonpy::Event;
using tritonpy::Host;
using tritonpy::Parameter;

namespace tritonpy {

void release_request(TRITONBACKEND_Request* request) {
  {
    const std::shared_ptr<TRITONBACKEND_ModelInstance>& instance = request->owner->get()->instance;
    std::lock_guard<std::mutex> lock(instance->mutex);
    instance->unreleased.erase(request);
  }
  request->released = true;
  request->owner.reset();
  request->layout.reset();
  request->inputs.clear();
  request->states.clear();
  request->parameters.clear();
  Host::get().requests.add(request);
}

}  // namespace tritonpy

namespace {

constexpr uint32_t kFinal = TRITONSERVER_RESPONSE_COMPLETE_FINAL;
constexpr int kMostQueued = 64;  // non-final responses of one request that Python has not taken

std::string label(const TRITONBACKEND_Request* request) {
  return "[request id: " + (request->id.empty() ? "<id_unknown>" : request->id) + "] ";
}

TRITONSERVER_Error* invalid(const std::string& message) {
  return error(TRITONSERVER_ERROR_INVALID_ARG, message);
}

// Log a call that breaks the rules of the interface, and return it as an error.
TRITONSERVER_Error* misuse(const std::string& message) {
  TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__, message.c_str());
  return error(TRITONSERVER_ERROR_INTERNAL, message);
}

TRITONSERVER_Error* bounds(const std::string& prefix, uint32_t index, size_t count,
                           const char* what) {
  return invalid(prefix + "out of bounds index " + std::to_string(index) + ": request has " +
                 std::to_string(count) + " " + what);
}

bool is_cancelled(const tritonpy::OwnedAnswer& owner) {
  tritonpy::Answer& answer = *owner->get();
  if (!answer.watched.exchange(true)) {  // Python reports a cancellation from now on
    Event event{Event::watch};
    event.owner = answer.instance->number;
    event.tag = answer.tag;
    Host::get().push(std::move(event));
  }
  return answer.cancelled;
}

// Send one response or, without `response`, only flags.
TRITONSERVER_Error* send(const tritonpy::OwnedAnswer& owner, TRITONBACKEND_Response* response,
                         uint32_t flags, TRITONSERVER_Error* failure) {
  const std::shared_ptr<tritonpy::Answer>& answer = owner->get();
  {
    std::unique_lock<std::mutex> lock(answer->mutex);
    if (!(flags & kFinal)) {
      answer->capacity.wait(lock, [&] {
        return answer->cancelled || answer->final_sent ||
               (!answer->blocked && answer->queued < kMostQueued);
      });
      ++answer->queued;
    }
    if (answer->final_sent) {
      lock.unlock();
      return misuse("the backend sent a response after the final response of its request");
    }
    answer->final_sent = flags & kFinal;
  }
  Event event{Event::response};
  event.tag = answer->tag;
  event.flags = flags | (response ? 0 : 2);  // 2: no data
  event.answer = answer;
  if (failure) {
    event.code = failure->code;
    event.text = failure->message;
  } else if (response) {
    event.outputs = std::move(response->outputs);
    event.parameters = std::move(response->parameters);
  }
  Host::get().respond(std::move(event));
  return nullptr;
}

void end_response(TRITONBACKEND_Response* response) {
  response->sent = true;
  response->owner.reset();
  response->outputs.clear();
  response->parameters.clear();
  Host::get().responses.add(response);
}

TRITONSERVER_Error* new_response(TRITONBACKEND_Response** response,
                                 const tritonpy::OwnedAnswer& owner) {
  *response = new TRITONBACKEND_Response;
  (*response)->owner = owner;
  return nullptr;
}

TRITONSERVER_Error* add_parameter(TRITONBACKEND_Response* response, Parameter parameter) {
  if (!response) return invalid("response was nullptr");
  if (response->sent) return misuse("the backend changed a response that it had sent");
  response->parameters.push_back(std::move(parameter));
  return nullptr;
}

// Allocate host memory, whatever memory the backend would prefer.
TRITONSERVER_Error* allocate_buffer(tritonpy::OutputBuffer* buffer, void** memory,
                                    uint64_t byte_size, TRITONSERVER_MemoryType* memory_type,
                                    int64_t* memory_type_id) {
  *memory = nullptr;
  if (buffer->memory) {
    return misuse("the backend asked twice for the buffer of '" + buffer->spec.name + "'");
  }
  buffer->memory = tritonpy::allocate(byte_size);
  if (!buffer->memory) {
    return error(TRITONSERVER_ERROR_UNAVAILABLE,
                 "unable to allocate " + std::to_string(byte_size) + " bytes for output '" +
                     buffer->spec.name + "'");
  }
  buffer->attributes.byte_size = byte_size;
  *memory = buffer->memory.get();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}

tritonpy::TensorSpec spec_of(const char* name, TRITONSERVER_DataType datatype,
                             const int64_t* shape, uint32_t dims_count) {
  const bool valid = datatype >= 0 && datatype <= TRITONSERVER_TYPE_BF16;
  return {name, valid ? datatype : TRITONSERVER_TYPE_INVALID,
          std::vector<int64_t>(shape, shape + dims_count)};
}

void set_usage(std::mutex& mutex, std::vector<TRITONSERVER_BufferAttributes>& usage,
               TRITONSERVER_BufferAttributes** reported, uint32_t count) {
  std::lock_guard<std::mutex> lock(mutex);
  usage.clear();
  for (uint32_t i = 0; i < count; ++i) usage.push_back(*reported[i]);
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONBACKEND_API_VERSION_MAJOR;
  *minor = TRITONBACKEND_API_VERSION_MINOR;
  return nullptr;
}

// Memory.

TRITONSERVER_Error* TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager*,
                                                        void** buffer,
                                                        TRITONSERVER_MemoryType memory_type,
                                                        int64_t, uint64_t byte_size) {
  *buffer = nullptr;
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    return error(TRITONSERVER_ERROR_UNSUPPORTED, "GPU memory allocation not supported");
  }
  if (memory_type == TRITONSERVER_MEMORY_CPU_PINNED) {
    return error(TRITONSERVER_ERROR_UNSUPPORTED, "Pinned memory allocation not supported");
  }
  *buffer = tritonpy::allocate(byte_size).release();
  return *buffer ? nullptr
                 : error(TRITONSERVER_ERROR_UNAVAILABLE, "CPU memory allocation failed");
}

TRITONSERVER_Error* TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager*, void* buffer,
                                                    TRITONSERVER_MemoryType memory_type, int64_t) {
  if (memory_type == TRITONSERVER_MEMORY_CPU) free(buffer);
  return nullptr;
}

// Inputs.

TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* datatype,
                                                  const int64_t** shape, uint32_t* dims_count,
                                                  uint64_t* byte_size, uint32_t* buffer_count) {
  if (name) *name = input->spec->name.c_str();
  if (datatype) *datatype = input->spec->datatype;
  if (shape) *shape = input->spec->shape.data();
  if (dims_count) *dims_count = static_cast<uint32_t>(input->spec->shape.size());
  if (byte_size) *byte_size = input->attributes.byte_size;
  if (buffer_count) *buffer_count = input->attributes.byte_size ? 1 : 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputPropertiesForHostPolicy(
    TRITONBACKEND_Input* input, const char*, const char** name, TRITONSERVER_DataType* datatype,
    const int64_t** shape, uint32_t* dims_count, uint64_t* byte_size, uint32_t* buffer_count) {
  return TRITONBACKEND_InputProperties(input, name, datatype, shape, dims_count, byte_size,
                                       buffer_count);
}

TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, uint32_t index,
                                              const void** buffer, uint64_t* buffer_byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  const bool exists = index == 0 && input->attributes.byte_size;
  *buffer = exists ? input->data : nullptr;
  *buffer_byte_size = exists ? input->attributes.byte_size : 0;
  *memory_type = input->attributes.memory_type;
  *memory_type_id = input->attributes.memory_type_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input* input, const char*, uint32_t index, const void** buffer,
    uint64_t* buffer_byte_size, TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id) {
  return TRITONBACKEND_InputBuffer(input, index, buffer, buffer_byte_size, memory_type,
                                   memory_type_id);
}

TRITONSERVER_Error* TRITONBACKEND_InputBufferAttributes(
    TRITONBACKEND_Input* input, uint32_t index, const void** buffer,
    TRITONSERVER_BufferAttributes** buffer_attributes) {
  const bool exists = index == 0 && input->attributes.byte_size;
  *buffer = exists ? input->data : nullptr;
  *buffer_attributes = exists ? &input->attributes : nullptr;
  return nullptr;
}

// Requests.

TRITONSERVER_Error* TRITONBACKEND_RequestId(TRITONBACKEND_Request* request, const char** id) {
  *id = request->id.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request* request,
                                                       uint64_t* id) {
  if (request->has_correlation_text) {
    return invalid(label(request) + "correlation ID in request is not an unsigned int");
  }
  *id = request->correlation_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request* request,
                                                             const char** id) {
  if (!request->has_correlation_text) {
    return invalid(label(request) + "correlation ID in request is not a string");
  }
  *id = request->correlation_text.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    TRITONBACKEND_Request* request, uint64_t* timeout) {
  *timeout = request->timeout_us;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestFlags(TRITONBACKEND_Request* request, uint32_t* flags) {
  *flags = request->flags;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* cancelled) {
  if (request->released) return misuse("the backend used a request that it had released");
  *cancelled = is_cancelled(request->owner);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request* request,
                                                        uint32_t* count) {
  *count = static_cast<uint32_t>(request->parameters.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestParameter(TRITONBACKEND_Request* request, uint32_t index,
                                                   const char** key,
                                                   TRITONSERVER_ParameterType* type,
                                                   const void** vvalue) {
  if (index >= request->parameters.size()) {
    return bounds("", index, request->parameters.size(), "parameters");
  }
  const Parameter& parameter = request->parameters[index];
  *key = parameter.name.c_str();
  *type = parameter.type;
  *vvalue = parameter.value();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count) {
  *count = static_cast<uint32_t>(request->inputs.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputName(TRITONBACKEND_Request* request, uint32_t index,
                                                   const char** input_name) {
  *input_name = nullptr;
  if (index >= request->inputs.size()) {
    return bounds(label(request), index, request->inputs.size(), "inputs");
  }
  *input_name = request->inputs[index].spec->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input) {
  for (TRITONBACKEND_Input& each : request->inputs) {
    if (each.spec->name == name) {
      *input = &each;
      return nullptr;
    }
  }
  *input = nullptr;
  return invalid(label(request) + "unknown request input name " + name);
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request,
                                                      uint32_t index,
                                                      TRITONBACKEND_Input** input) {
  if (index >= request->inputs.size()) {
    return bounds(label(request), index, request->inputs.size(), "inputs");
  }
  *input = &request->inputs[index];
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
  *count = request->layout ? static_cast<uint32_t>(request->layout->outputs.size()) : 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request, uint32_t index,
                                                    const char** output_name) {
  *output_name = nullptr;
  const size_t count = request->layout ? request->layout->outputs.size() : 0;
  if (index >= count) return bounds(label(request), index, count, "requested outputs");
  *output_name = request->layout->outputs[index].c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputBufferProperties(
    TRITONBACKEND_Request*, const char*, size_t*, TRITONSERVER_MemoryType* memory_type,
    int64_t* memory_type_id) {
  *memory_type = TRITONSERVER_MEMORY_CPU;  // every output buffer is in host memory
  *memory_type_id = 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request,
                                                 uint32_t release_flags) {
  if (request->released) return misuse("the backend released a request twice");
  Event event{release_flags & TRITONSERVER_REQUEST_RELEASE_RESCHEDULE ? Event::reschedule
                                                                      : Event::release};
  event.tag = request->tag;
  event.answer = request->owner->get();
  if (event.kind == Event::reschedule) {
    std::lock_guard<std::mutex> lock(event.answer->mutex);
    if (event.answer->final_sent) {
      return misuse("the backend rescheduled a request that has its final response");
    }
    event.answer->final_sent = true;  // of this execution
    event.flags = kFinal;
  }
  const bool reschedules = event.kind == Event::reschedule;
  if (reschedules) {
    Host::get().respond(std::move(event));
    tritonpy::release_request(request);
  } else {
    // Destroys the owner first: its error response, if any, precedes the release.
    tritonpy::release_request(request);
    Host::get().respond(std::move(event));
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestTrace(TRITONBACKEND_Request* request,
                                               TRITONSERVER_InferenceTrace** trace) {
  *trace = request->traced ? &request->trace : nullptr;
  return nullptr;
}

// Responses.

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory** factory,
                                                     TRITONBACKEND_Request* request) {
  if (request->released) return misuse("the backend used a request that it had released");
  *factory = new TRITONBACKEND_ResponseFactory{request->owner};
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory* factory) {
  delete factory;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory* factory,
                                                           uint32_t send_flags) {
  return send(factory->owner, nullptr, send_flags, nullptr);
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(
    TRITONBACKEND_ResponseFactory* factory, bool* cancelled) {
  *cancelled = is_cancelled(factory->owner);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
  *response = nullptr;
  if (request->released) return misuse("the backend used a request that it had released");
  return new_response(response, request->owner);
}

TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response** response,
                                                         TRITONBACKEND_ResponseFactory* factory) {
  return new_response(response, factory->owner);
}

TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
  if (!response) return nullptr;
  if (response->sent) return misuse("the backend deleted a response that it had sent or deleted");
  end_response(response);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response* response,
                                                             const char* name, const char* value) {
  Parameter parameter{name};
  parameter.text = value;
  return add_parameter(response, std::move(parameter));
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response* response,
                                                          const char* name, int64_t value) {
  Parameter parameter{name, TRITONSERVER_PARAMETER_INT};
  parameter.integer = value;
  return add_parameter(response, std::move(parameter));
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response* response,
                                                           const char* name, bool value) {
  Parameter parameter{name, TRITONSERVER_PARAMETER_BOOL};
  parameter.boolean = value;
  return add_parameter(response, std::move(parameter));
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response* response,
                                                             const char* name, double value) {
  Parameter parameter{name, TRITONSERVER_PARAMETER_DOUBLE};
  parameter.real = value;
  return add_parameter(response, std::move(parameter));
}

TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 TRITONSERVER_DataType datatype,
                                                 const int64_t* shape, uint32_t dims_count) {
  *output = nullptr;
  if (!response) return invalid("response was nullptr");
  if (response->sent) return misuse("the backend changed a response that it had sent");
  response->outputs.push_back(std::make_unique<TRITONBACKEND_Output>());
  *output = response->outputs.back().get();
  (*output)->buffer.spec = spec_of(name, datatype, shape, dims_count);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response,
                                               uint32_t send_flags, TRITONSERVER_Error* error) {
  if (!response) return invalid("response was nullptr");
  if (response->sent) return misuse("the backend sent a response twice");
  TRITONSERVER_Error* failure = send(response->owner, response, send_flags, error);
  end_response(response);
  return failure;
}

TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               uint64_t buffer_byte_size,
                                               TRITONSERVER_MemoryType* memory_type,
                                               int64_t* memory_type_id) {
  return allocate_buffer(&output->buffer, buffer, buffer_byte_size, memory_type, memory_type_id);
}

TRITONSERVER_Error* TRITONBACKEND_OutputBufferAttributes(
    TRITONBACKEND_Output* output, TRITONSERVER_BufferAttributes** buffer_attributes) {
  *buffer_attributes = &output->buffer.attributes;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response* response,
                                                          uint32_t index, const char** name,
                                                          TRITONSERVER_DataType* datatype,
                                                          const int64_t** shape,
                                                          uint64_t* dim_count) {
  if (index >= response->outputs.size()) {
    return invalid("out of bounds index " + std::to_string(index) + ": response has " +
                   std::to_string(response->outputs.size()) + " outputs");
  }
  const tritonpy::TensorSpec& spec = response->outputs[index]->buffer.spec;
  *name = spec.name.c_str();
  *datatype = spec.datatype;
  *shape = spec.shape.data();
  *dim_count = spec.shape.size();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response* response,
                                                                const char* name,
                                                                TRITONSERVER_DataType* datatype,
                                                                const int64_t** shape,
                                                                uint64_t* dim_count) {
  for (const auto& output : response->outputs) {
    const tritonpy::TensorSpec& spec = output->buffer.spec;
    if (spec.name != name) continue;
    *datatype = spec.datatype;
    *shape = spec.shape.data();
    *dim_count = spec.shape.size();
    return nullptr;
  }
  return invalid(std::string("Output name ") + name + " not found.");
}

// States of sequences.

TRITONSERVER_Error* TRITONBACKEND_StateNew(TRITONBACKEND_State** state,
                                           TRITONBACKEND_Request* request, const char* name,
                                           TRITONSERVER_DataType datatype, const int64_t* shape,
                                           uint32_t dims_count) {
  *state = nullptr;
  if (request->released) return misuse("the backend used a request that it had released");
  const TRITONBACKEND_Model& model = *request->instance->model;
  if (model.states.empty()) {
    return invalid(std::string("unable to add state '") + name +
                   "'. State configuration is missing for model '" + model.name + "'.");
  }
  bool known = false;
  for (const std::string& each : model.states) known |= each == name;
  if (!known) return invalid(std::string("state '") + name + "' is not a valid state name.");
  request->states.push_back(std::make_unique<TRITONBACKEND_State>());
  *state = request->states.back().get();
  (*state)->request = request;
  (*state)->buffer.spec = spec_of(name, datatype, shape, dims_count);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_StateBuffer(TRITONBACKEND_State* state, void** buffer,
                                              uint64_t buffer_byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  state->buffer.memory.reset();
  return allocate_buffer(&state->buffer, buffer, buffer_byte_size, memory_type, memory_type_id);
}

TRITONSERVER_Error* TRITONBACKEND_StateBufferAttributes(
    TRITONBACKEND_State* state, TRITONSERVER_BufferAttributes** buffer_attributes) {
  *buffer_attributes = &state->buffer.attributes;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state) {
  Event event{Event::state};
  event.tag = state->request->tag;
  event.answer = state->request->owner->get();
  event.outputs.push_back(std::make_unique<TRITONBACKEND_Output>());
  event.outputs.back()->buffer = std::move(state->buffer);
  Host::get().respond(std::move(event));
  return nullptr;
}

// Backends.

TRITONSERVER_Error* TRITONBACKEND_BackendName(TRITONBACKEND_Backend* backend, const char** name) {
  *name = backend->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend* backend,
                                                TRITONSERVER_Message** backend_config) {
  *backend_config = &backend->config;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend* backend,
                                                         TRITONBACKEND_ExecutionPolicy* policy) {
  *policy = backend->policy;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend* backend,
                                                            TRITONBACKEND_ExecutionPolicy policy) {
  backend->policy = policy;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend* backend,
                                                   TRITONBACKEND_ArtifactType* artifact_type,
                                                   const char** location) {
  *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = backend->directory.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend*,
                                                       TRITONBACKEND_MemoryManager** manager) {
  static TRITONBACKEND_MemoryManager only;
  *manager = &only;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend, void** state) {
  *state = backend->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend* backend, void* state) {
  backend->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute* backend_attributes, TRITONSERVER_InstanceGroupKind kind,
    uint64_t count, const uint64_t* device_ids, uint64_t id_count) {
  std::vector<uint64_t> devices;
  if (device_ids) devices.assign(device_ids, device_ids + id_count);
  backend_attributes->preferred_groups.push_back({kind, count, std::move(devices)});
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute* backend_attributes, bool enabled) {
  backend_attributes->parallel_loading = enabled;
  return nullptr;
}

// Models.

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  *name = model->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* version) {
  *version = model->version;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* artifact_type,
                                                  const char** location) {
  *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = model->repository.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, uint32_t config_version,
                                              TRITONSERVER_Message** model_config) {
  if (config_version != 1) {
    return error(TRITONSERVER_ERROR_UNSUPPORTED,
                 "model configuration version " + std::to_string(config_version) +
                     " not supported, supported versions are: 1");
  }
  *model_config = new TRITONSERVER_Message{model->config};
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model,
                                                          bool* auto_complete_config) {
  *auto_complete_config = model->auto_complete;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, uint32_t,
                                                 TRITONSERVER_Message* model_config) {
  if (!model->initializing) {
    return error(TRITONSERVER_ERROR_UNSUPPORTED,
                 "the model configuration can be set only in TRITONBACKEND_ModelInitialize");
  }
  model->config = model_config->text;
  model->config_changed = true;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelServer(TRITONBACKEND_Model* model,
                                              TRITONSERVER_Server** server) {
  *server = &model->server;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model,
                                               TRITONBACKEND_Backend** backend) {
  *backend = model->backend;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model* model,
                                                         TRITONSERVER_BufferAttributes** usage,
                                                         uint32_t usage_size) {
  set_usage(model->usage_mutex, model->usage, usage, usage_size);
  return nullptr;
}

// Instances.

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance,
                                                    const char** name) {
  *name = instance->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind) {
  *kind = instance->kind;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance,
                                                        int32_t* device_id) {
  *device_id = instance->device;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance* instance,
                                                          TRITONSERVER_Message** host_policy) {
  *host_policy = &instance->host_policy;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance* instance,
                                                         bool* is_passive) {
  *is_passive = instance->passive;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance* instance,
                                                            uint32_t* count) {
  *count = static_cast<uint32_t>(instance->profiles.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance* instance,
                                                           uint32_t index,
                                                           const char** profile_name) {
  *profile_name = nullptr;
  if (index >= instance->profiles.size()) {
    return invalid("out of bounds index " + std::to_string(index) +
                   ": instance is configured with " + std::to_string(instance->profiles.size()) +
                   " profiles");
  }
  *profile_name = instance->profiles[index].c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
    TRITONBACKEND_ModelInstance* instance, uint32_t* count) {
  *count = static_cast<uint32_t>(instance->secondary_devices.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance* instance, uint32_t index, const char** kind, int64_t* id) {
  if (index >= instance->secondary_devices.size()) {
    return invalid("out of bounds index " + std::to_string(index) +
                   ": instance is configured with " +
                   std::to_string(instance->secondary_devices.size()) + " secondary devices");
  }
  *kind = instance->secondary_devices[index].first.c_str();
  *id = instance->secondary_devices[index].second;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state) {
  *state = instance->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state) {
  instance->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance* instance, TRITONSERVER_BufferAttributes** usage,
    uint32_t usage_size) {
  set_usage(instance->usage_mutex, instance->usage, usage, usage_size);
  return nullptr;
}

// Statistics. The server counts requests and executions itself; the backend's times of computing
// divide an execution into input, inference and output.

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request*, bool, uint64_t,
    uint64_t compute_start_ns, uint64_t compute_end_ns, uint64_t) {
  instance->compute_start_ns = compute_start_ns;
  instance->compute_end_ns = compute_end_ns;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, uint64_t, uint64_t, uint64_t compute_start_ns,
    uint64_t compute_end_ns, uint64_t) {
  instance->compute_start_ns = compute_start_ns;
  instance->compute_end_ns = compute_end_ns;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics** response_statistics) {
  *response_statistics = new TRITONBACKEND_ModelInstanceResponseStatistics;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics) {
  delete response_statistics;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    TRITONBACKEND_ModelInstance* model_instance) {
  response_statistics->instance = model_instance;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    TRITONBACKEND_ResponseFactory* response_factory) {
  response_statistics->factory = response_factory;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics, uint64_t response_start) {
  response_statistics->response_start = response_start;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t compute_output_start) {
  response_statistics->compute_output_start = compute_output_start;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics, uint64_t response_end) {
  response_statistics->response_end = response_end;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    TRITONSERVER_Error* error) {
  response_statistics->error = error;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics) {
  if (!response_statistics->instance) return invalid("model instance is not set");
  if (!response_statistics->factory) return invalid("response factory is not set");
  return nullptr;
}

}  // extern "C"
