// Copies each input INPUTn to the output OUTPUTn. Every function that a backend may define is here.
#include "common.h"

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  uint32_t major, minor;
  CHECK(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < TRITONBACKEND_API_VERSION_MINOR) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "the server is too old");
  }
  const char* name;
  CHECK(TRITONBACKEND_BackendName(backend, &name));
  TRITONSERVER_Message* config;
  CHECK(TRITONBACKEND_BackendConfig(backend, &config));
  const char* text;
  size_t size;
  CHECK(TRITONSERVER_MessageSerializeToJson(config, &text, &size));
  char line[1024];
  snprintf(line, sizeof line, "backend %s has the settings %.*s", name, (int)size, text);
  log_line(line);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  (void)backend;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* config;
  CHECK(TRITONBACKEND_ModelConfig(model, 1, &config));
  const char* text;
  size_t size;
  CHECK(TRITONSERVER_MessageSerializeToJson(config, &text, &size));
  CHECK(TRITONBACKEND_ModelSetState(model, strndup(text, size)));
  return TRITONSERVER_MessageDelete(config);
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  void* state;
  CHECK(TRITONBACKEND_ModelState(model, &state));
  free(state);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  const char* name;
  TRITONSERVER_InstanceGroupKind kind;
  int32_t device;
  CHECK(TRITONBACKEND_ModelInstanceName(instance, &name));
  CHECK(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  CHECK(TRITONBACKEND_ModelInstanceDeviceId(instance, &device));
  char line[256];
  snprintf(line, sizeof line, "instance %s runs on %s device %d", name,
           TRITONSERVER_InstanceGroupKindString(kind), device);
  log_line(line);
  TRITONSERVER_BufferAttributes* usage;
  CHECK(TRITONSERVER_BufferAttributesNew(&usage));
  CHECK(TRITONSERVER_BufferAttributesSetByteSize(usage, 4096));
  CHECK(TRITONBACKEND_ModelInstanceReportMemoryUsage(instance, &usage, 1));
  return TRITONSERVER_BufferAttributesDelete(usage);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance* instance) {
  (void)instance;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  (void)instance;
  return NULL;
}

static TRITONSERVER_Error* copy_input(TRITONBACKEND_Request* request,
                                      TRITONBACKEND_Response* response, uint32_t index) {
  TRITONBACKEND_Input* input;
  CHECK(TRITONBACKEND_RequestInputByIndex(request, index, &input));
  const char* name;
  TRITONSERVER_DataType datatype;
  const int64_t* shape;
  uint32_t dims, buffers;
  uint64_t size;
  CHECK(TRITONBACKEND_InputProperties(input, &name, &datatype, &shape, &dims, &size, &buffers));
  if (strncmp(name, "INPUT", 5) != 0) return NULL;
  char output_name[64];
  snprintf(output_name, sizeof output_name, "OUTPUT%s", name + 5);
  TRITONBACKEND_Output* output;
  CHECK(TRITONBACKEND_ResponseOutput(response, &output, output_name, datatype, shape, dims));
  void* target;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU_PINNED;
  int64_t type_id = 7;
  CHECK(TRITONBACKEND_OutputBuffer(output, &target, size, &type, &type_id));
  uint64_t offset = 0;
  for (uint32_t i = 0; i < buffers; ++i) {
    const void* source;
    uint64_t bytes;
    CHECK(TRITONBACKEND_InputBuffer(input, i, &source, &bytes, &type, &type_id));
    memcpy((char*)target + offset, source, bytes);
    offset += bytes;
  }
  return NULL;
}

// The size of the first dimension of the first input: the rows of the request.
static uint64_t rows_of(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Input* input;
  const int64_t* shape;
  IGNORE(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
  IGNORE(TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, NULL, NULL, NULL));
  return (uint64_t)shape[0];
}

static TRITONSERVER_Error* respond(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Response* response;
  CHECK(TRITONBACKEND_ResponseNew(&response, request));
  const char* id;
  CHECK(TRITONBACKEND_RequestId(request, &id));
  CHECK(TRITONBACKEND_ResponseSetStringParameter(response, "id", id));
  CHECK(TRITONBACKEND_ResponseSetIntParameter(response, "answer", 42));
  CHECK(TRITONBACKEND_ResponseSetBoolParameter(response, "copied", true));
  CHECK(TRITONBACKEND_ResponseSetDoubleParameter(response, "ratio", 0.5));
  uint32_t count;
  CHECK(TRITONBACKEND_RequestInputCount(request, &count));
  TRITONSERVER_Error* error = NULL;
  for (uint32_t i = 0; i < count && error == NULL; ++i) error = copy_input(request, response, i);
  TRITONSERVER_Error* unsent =
      TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
  TRITONSERVER_ErrorDelete(error);
  return unsent;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  const uint64_t start = now_ns();
  uint64_t rows = 0;
  for (uint32_t i = 0; i < request_count; ++i) {
    rows += rows_of(requests[i]);
    TRITONSERVER_ErrorDelete(respond(requests[i]));
    const uint64_t end = now_ns();
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportStatistics(
        instance, requests[i], true, start, start, end, end));
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  const uint64_t end = now_ns();
  return TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, rows, start, start, end, end);
}
