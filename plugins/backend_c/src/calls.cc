// Requests that a backend makes to other models, and its queries to the server.
#include "calls.h"

using tritonpy::Call;
using tritonpy::CallResponse;
using tritonpy::error;
using tritonpy::Event;
using tritonpy::Host;
using tritonpy::json_text;
using tritonpy::Parameter;

namespace {

TRITONSERVER_Error* invalid(const std::string& message) {
  return error(TRITONSERVER_ERROR_INVALID_ARG, message);
}

TRITONSERVER_Error* unknown_input(const char* name) {
  return invalid(std::string("input '") + name + "' does not exist in request");
}

tritonpy::CallInput* find_input(Call* call, const char* name) {
  for (tritonpy::CallInput& input : call->inputs) {
    if (input.spec.name == name) return &input;
  }
  return nullptr;
}

TRITONSERVER_Error* append_data(Call* call, const char* name, const void* base,
                                const TRITONSERVER_BufferAttributes& attributes) {
  tritonpy::CallInput* input = find_input(call, name);
  if (!input) return unknown_input(name);
  if (attributes.memory_type == TRITONSERVER_MEMORY_GPU) {
    return error(TRITONSERVER_ERROR_UNSUPPORTED,
                 std::string("input '") + name + "' is in GPU memory, which calls cannot pass on");
  }
  if (attributes.byte_size) {
    input->data.emplace_back(static_cast<const char*>(base), attributes.byte_size);
  }
  return nullptr;
}

// Send a query about one version of a model; the result is a JSON text or a number.
TRITONSERVER_Error* query_model(TRITONSERVER_Server* server, const char* verb, const char* name,
                              int64_t version, std::string* result) {
  tritonpy::ModelScope scope(server->model);
  const std::string arguments = "{\"name\":" + json_text(name ? name : "") +
                                ",\"version\":" + std::to_string(version) + "}";
  return Host::get().query(verb, arguments, result);
}

TRITONSERVER_Error* query_flag(TRITONSERVER_Server* server, const char* verb, const char* name,
                                int64_t version, bool* answer) {
  std::string result;
  *answer = false;
  if (TRITONSERVER_Error* failure = query_model(server, verb, name, version, &result)) {
    return failure;
  }
  *answer = result == "true";
  return nullptr;
}

TRITONSERVER_Error* query_flags(TRITONSERVER_Server* server, const char* verb, const char* name,
                                  int64_t version, uint32_t* flags, void** voidp) {
  std::string result;
  *flags = 0;
  if (voidp) *voidp = nullptr;
  if (TRITONSERVER_Error* failure = query_model(server, verb, name, version, &result)) {
    return failure;
  }
  *flags = static_cast<uint32_t>(std::stoul(result));
  return nullptr;
}

TRITONSERVER_Error* control(TRITONSERVER_Server* server, const char* verb, const char* name,
                            const std::string& parameters) {
  tritonpy::ModelScope scope(server->model);
  return Host::get().query(
      verb, "{\"name\":" + json_text(name) + ",\"parameters\":" + parameters + "}", nullptr);
}

}  // namespace

extern "C" {

// Allocators of the outputs of calls.

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorNew(
    TRITONSERVER_ResponseAllocator** allocator, TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
    TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
    TRITONSERVER_ResponseAllocatorStartFn_t start_fn) {
  *allocator = new TRITONSERVER_ResponseAllocator{alloc_fn, release_fn, start_fn};
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator* allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn) {
  allocator->attributes = buffer_attributes_fn;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetQueryFunction(
    TRITONSERVER_ResponseAllocator* allocator, TRITONSERVER_ResponseAllocatorQueryFn_t query_fn) {
  allocator->query = query_fn;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorDelete(
    TRITONSERVER_ResponseAllocator* allocator) {
  delete allocator;
  return nullptr;
}

// Requests to other models.

TRITONSERVER_Error* TRITONSERVER_InferenceRequestNew(
    TRITONSERVER_InferenceRequest** inference_request, TRITONSERVER_Server* server,
    const char* model_name, int64_t model_version) {
  auto call = std::make_unique<TRITONSERVER_InferenceRequest>();
  call->model = server->model;
  call->name = model_name;
  call->version = model_version;
  *inference_request = call.release();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestDelete(
    TRITONSERVER_InferenceRequest* inference_request) {
  if (inference_request && inference_request->running) {
    return error(TRITONSERVER_ERROR_INTERNAL,
                 "the backend deleted a request before its release callback");
  }
  delete inference_request;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestId(
    TRITONSERVER_InferenceRequest* inference_request, const char** id) {
  *id = inference_request->id.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetId(
    TRITONSERVER_InferenceRequest* inference_request, const char* id) {
  inference_request->id = id;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestFlags(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t* flags) {
  *flags = inference_request->flags;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetFlags(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t flags) {
  inference_request->flags = flags;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationId(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t* correlation_id) {
  if (inference_request->has_correlation_text) {
    return invalid("given request's correlation id is not an unsigned int");
  }
  *correlation_id = inference_request->correlation_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationIdString(
    TRITONSERVER_InferenceRequest* inference_request, const char** correlation_id) {
  if (!inference_request->has_correlation_text) {
    return invalid("given request's correlation id is not a string");
  }
  *correlation_id = inference_request->correlation_text.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationId(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t correlation_id) {
  inference_request->correlation_id = correlation_id;
  inference_request->has_correlation_text = false;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest* inference_request, const char* correlation_id) {
  inference_request->correlation_text = correlation_id;
  inference_request->has_correlation_text = true;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestCancel(
    TRITONSERVER_InferenceRequest* inference_request) {
  inference_request->cancelled = true;
  if (!inference_request->running) return nullptr;
  Event event{Event::cancel_call};
  event.owner = inference_request->model;
  event.tag = inference_request->number;
  Host::get().push(std::move(event));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestIsCancelled(
    TRITONSERVER_InferenceRequest* inference_request, bool* is_cancelled) {
  *is_cancelled = inference_request->cancelled;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriority(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t* priority) {
  *priority = static_cast<uint32_t>(inference_request->priority);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriorityUInt64(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t* priority) {
  *priority = inference_request->priority;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriority(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t priority) {
  inference_request->priority = priority;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriorityUInt64(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t priority) {
  inference_request->priority = priority;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t* timeout_us) {
  *timeout_us = inference_request->timeout_us;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t timeout_us) {
  inference_request->timeout_us = timeout_us;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddInput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name,
    TRITONSERVER_DataType datatype, const int64_t* shape, uint64_t dim_count) {
  if (find_input(inference_request, name)) {
    return invalid(std::string("input '") + name + "' already exists in request");
  }
  tritonpy::CallInput input;
  input.spec = {name, datatype, std::vector<int64_t>(shape, shape + dim_count)};
  inference_request->inputs.push_back(std::move(input));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveInput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  auto& inputs = inference_request->inputs;
  for (auto input = inputs.begin(); input != inputs.end(); ++input) {
    if (input->spec.name == name) {
      inputs.erase(input);
      return nullptr;
    }
  }
  return unknown_input(name);
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputs(
    TRITONSERVER_InferenceRequest* inference_request) {
  inference_request->inputs.clear();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id) {
  return append_data(inference_request, name, base, {byte_size, memory_type, memory_type_id});
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, const char*) {
  return append_data(inference_request, name, base, {byte_size, memory_type, memory_type_id});
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    TRITONSERVER_BufferAttributes* buffer_attributes) {
  return append_data(inference_request, name, base, *buffer_attributes);
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputData(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  tritonpy::CallInput* input = find_input(inference_request, name);
  if (!input) return unknown_input(name);
  input->data.clear();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRequestedOutput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  inference_request->outputs.insert(name);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveRequestedOutput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  inference_request->outputs.erase(name);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest* inference_request) {
  inference_request->outputs.clear();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest* inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void* request_release_userp) {
  inference_request->release = request_release_fn;
  inference_request->release_userp = request_release_userp;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest* inference_request,
    TRITONSERVER_ResponseAllocator* response_allocator, void* response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void* response_userp) {
  inference_request->allocator = response_allocator;
  inference_request->allocator_userp = response_allocator_userp;
  inference_request->respond = response_fn;
  inference_request->response_userp = response_userp;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, const char* value) {
  Parameter parameter{key};
  parameter.text = value;
  request->parameters.push_back(std::move(parameter));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetIntParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, int64_t value) {
  Parameter parameter{key, TRITONSERVER_PARAMETER_INT};
  parameter.integer = value;
  request->parameters.push_back(std::move(parameter));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetBoolParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, bool value) {
  Parameter parameter{key, TRITONSERVER_PARAMETER_BOOL};
  parameter.boolean = value;
  request->parameters.push_back(std::move(parameter));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetDoubleParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, double value) {
  Parameter parameter{key, TRITONSERVER_PARAMETER_DOUBLE};
  parameter.real = value;
  request->parameters.push_back(std::move(parameter));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerInferAsync(TRITONSERVER_Server* server,
                                                  TRITONSERVER_InferenceRequest* inference_request,
                                                  TRITONSERVER_InferenceTrace* trace) {
  if (!inference_request->respond || !inference_request->allocator) {
    return invalid("a request needs a response callback and an allocator");
  }
  static std::atomic<int64_t> last_number{0};
  inference_request->model = server->model;
  inference_request->number = ++last_number;
  inference_request->running = true;
  inference_request->cancelled = false;
  for (tritonpy::CallInput& input : inference_request->inputs) input.join();
  tritonpy::ModelScope scope(server->model);
  const int64_t instance = tritonpy::executing_instance ? tritonpy::executing_instance->number : 0;
  const std::string arguments =
      "{\"number\":" + std::to_string(inference_request->number) +
      ",\"call\":" + std::to_string(reinterpret_cast<intptr_t>(inference_request)) +
      ",\"instance\":" + std::to_string(instance) + "}";
  if (TRITONSERVER_Error* failure = Host::get().query("infer", arguments, nullptr)) {
    inference_request->running = false;  // it still belongs to the caller
    return failure;
  }
  delete trace;  // a child trace belongs to the server from now on
  return nullptr;
}

// Responses of other models.

TRITONSERVER_Error* TRITONSERVER_InferenceResponseDelete(
    TRITONSERVER_InferenceResponse* inference_response) {
  delete inference_response;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseError(
    TRITONSERVER_InferenceResponse* inference_response) {
  const CallResponse& response = *inference_response;
  return response.code < 0 ? nullptr
                           : error(static_cast<TRITONSERVER_Error_Code>(response.code),
                                   response.message);
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseModel(
    TRITONSERVER_InferenceResponse* inference_response, const char** model_name,
    int64_t* model_version) {
  *model_name = inference_response->model_name.c_str();
  *model_version = inference_response->model_version;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseId(
    TRITONSERVER_InferenceResponse* inference_response, const char** request_id) {
  *request_id = inference_response->id.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameterCount(
    TRITONSERVER_InferenceResponse* inference_response, uint32_t* count) {
  *count = static_cast<uint32_t>(inference_response->parameters.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameter(
    TRITONSERVER_InferenceResponse* inference_response, uint32_t index, const char** name,
    TRITONSERVER_ParameterType* type, const void** vvalue) {
  const auto& parameters = inference_response->parameters;
  if (index >= parameters.size()) {
    return invalid("out of bounds index " + std::to_string(index) + ": response has " +
                   std::to_string(parameters.size()) + " parameters");
  }
  *name = parameters[index].name.c_str();
  *type = parameters[index].type;
  *vvalue = parameters[index].value();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutputCount(
    TRITONSERVER_InferenceResponse* inference_response, uint32_t* count) {
  *count = static_cast<uint32_t>(inference_response->outputs.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse* inference_response, uint32_t index, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint64_t* dim_count,
    const void** base, size_t* byte_size, TRITONSERVER_MemoryType* memory_type,
    int64_t* memory_type_id, void** userp) {
  const auto& outputs = inference_response->outputs;
  if (index >= outputs.size()) {
    return invalid("out of bounds index " + std::to_string(index) + ": response has " +
                   std::to_string(outputs.size()) + " outputs");
  }
  const tritonpy::CallOutput& output = outputs[index];
  *name = output.spec.name.c_str();
  *datatype = output.spec.datatype;
  *shape = output.spec.shape.data();
  *dim_count = output.spec.shape.size();
  *base = output.buffer;
  *byte_size = output.byte_size;
  *memory_type = output.memory_type;
  *memory_type_id = output.memory_type_id;
  *userp = output.buffer_userp;
  return nullptr;
}

// Traces. A call's trace context is that of the request that the trace belongs to.

TRITONSERVER_Error* TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace* trace,
                                                              uint64_t timestamp,
                                                              const char* activity_name) {
  if (!trace->request) return nullptr;
  Event event{Event::trace};
  event.owner = trace->request->instance->number;
  event.tag = trace->request->tag;
  event.flags = static_cast<int64_t>(timestamp);
  event.text = activity_name;
  Host::get().push(std::move(event));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceSpawnChildTrace(
    TRITONSERVER_InferenceTrace* trace, TRITONSERVER_InferenceTrace** child_trace) {
  *child_trace = new TRITONSERVER_InferenceTrace{nullptr, trace->context};
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace* trace,
                                                       const char** trace_context) {
  *trace_context = trace->context.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace* trace,
                                                  uint64_t* id) {
  *id = trace->request ? static_cast<uint64_t>(trace->request->tag) + 1 : 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace*,
                                                        uint64_t* parent_id) {
  *parent_id = 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace* trace,
                                                         const char** model_name) {
  *model_name = trace->request ? trace->request->instance->model->name.c_str() : "";
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace* trace,
                                                            int64_t* model_version) {
  *model_version =
      trace->request ? static_cast<int64_t>(trace->request->instance->model->version) : -1;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace* trace,
                                                         const char** request_id) {
  *request_id = trace->request ? trace->request->id.c_str() : "";
  return nullptr;
}

// The server.

TRITONSERVER_Error* TRITONSERVER_ServerIsLive(TRITONSERVER_Server* server, bool* live) {
  return query_flag(server, "server_is_live", "", -1, live);
}

TRITONSERVER_Error* TRITONSERVER_ServerIsReady(TRITONSERVER_Server* server, bool* ready) {
  return query_flag(server, "server_is_ready", "", -1, ready);
}

TRITONSERVER_Error* TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server* server,
                                                    const char* model_name, int64_t model_version,
                                                    bool* ready) {
  return query_flag(server, "model_is_ready", model_name, model_version, ready);
}

TRITONSERVER_Error* TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server* server,
                                                            const char* model_name,
                                                            int64_t model_version,
                                                            uint32_t* flags, void** voidp) {
  return query_flags(server, "batch_properties", model_name, model_version, flags, voidp);
}

TRITONSERVER_Error* TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server* server,
                                                                  const char* model_name,
                                                                  int64_t model_version,
                                                                  uint32_t* txn_flags,
                                                                  void** voidp) {
  return query_flags(server, "transaction_properties", model_name, model_version, txn_flags,
                       voidp);
}

TRITONSERVER_Error* TRITONSERVER_ServerLoadModel(TRITONSERVER_Server* server,
                                                 const char* model_name) {
  return control(server, "load_model", model_name, "[]");
}

TRITONSERVER_Error* TRITONSERVER_ServerLoadModelWithParameters(
    TRITONSERVER_Server* server, const char* model_name,
    const TRITONSERVER_Parameter** parameters, uint64_t parameter_count) {
  return control(server, "load_model", model_name,
                 tritonpy::json_parameters(parameters, parameter_count));
}

TRITONSERVER_Error* TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server* server,
                                                   const char* model_name) {
  return control(server, "unload_model", model_name, "[]");
}

TRITONSERVER_Error* TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server* server,
                                                                const char* model_name) {
  return control(server, "unload_model_and_dependents", model_name, "[]");
}

}  // extern "C"
