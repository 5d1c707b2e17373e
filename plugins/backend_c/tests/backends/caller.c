// Doubles IN by a call of the model "double", and counts its calls in a metric. IN = -1 asks for
// a model that does not exist; IN = -2 loads the model "late" and reports whether it is ready.
#include "common.h"

struct Model {
  TRITONSERVER_Server* server;
  TRITONSERVER_ResponseAllocator* allocator;
  TRITONSERVER_MetricFamily* family;
  TRITONSERVER_Metric* metric;
};

struct Result {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool responded, released;
  int32_t value;
  TRITONSERVER_Error* error;
};

static TRITONSERVER_Error* allocate(TRITONSERVER_ResponseAllocator* unused, const char* name,
                                    size_t size, TRITONSERVER_MemoryType type, int64_t type_id,
                                    void* userp, void** buffer, void** buffer_userp,
                                    TRITONSERVER_MemoryType* actual_type, int64_t* actual_id) {
  (void)unused, (void)name, (void)type, (void)type_id, (void)userp;
  *buffer = malloc(size);
  *buffer_userp = NULL;
  *actual_type = TRITONSERVER_MEMORY_CPU;
  *actual_id = 0;
  return NULL;
}

static TRITONSERVER_Error* release(TRITONSERVER_ResponseAllocator* unused, void* buffer,
                                   void* buffer_userp, size_t size, TRITONSERVER_MemoryType type,
                                   int64_t type_id) {
  (void)unused, (void)buffer_userp, (void)size, (void)type, (void)type_id;
  free(buffer);
  return NULL;
}

static void responded(TRITONSERVER_InferenceResponse* response, const uint32_t flags, void* userp) {
  struct Result* result = userp;
  TRITONSERVER_Error* error = response ? TRITONSERVER_InferenceResponseError(response) : NULL;
  int32_t value = 0;
  if (response != NULL && error == NULL) {
    const char* name;
    TRITONSERVER_DataType datatype;
    const int64_t* shape;
    uint64_t dims;
    const void* data;
    size_t size;
    TRITONSERVER_MemoryType type;
    int64_t type_id;
    void* buffer_userp;
    error = TRITONSERVER_InferenceResponseOutput(response, 0, &name, &datatype, &shape, &dims,
                                                 &data, &size, &type, &type_id, &buffer_userp);
    if (error == NULL) memcpy(&value, data, sizeof value);
  }
  if (response) IGNORE(TRITONSERVER_InferenceResponseDelete(response));
  pthread_mutex_lock(&result->mutex);
  result->value = value;
  result->error = error;
  result->responded = flags & FINAL;
  pthread_cond_signal(&result->changed);
  pthread_mutex_unlock(&result->mutex);
}

static void released(TRITONSERVER_InferenceRequest* request, const uint32_t flags, void* userp) {
  (void)flags;
  struct Result* result = userp;
  IGNORE(TRITONSERVER_InferenceRequestDelete(request));
  pthread_mutex_lock(&result->mutex);
  result->released = true;
  pthread_cond_signal(&result->changed);
  pthread_mutex_unlock(&result->mutex);
}

static TRITONSERVER_Error* call(struct Model* caller, const char* model, int32_t value,
                                int32_t* result_value) {
  struct Result result = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false, 0,
                          NULL};
  TRITONSERVER_InferenceRequest* request;
  CHECK(TRITONSERVER_InferenceRequestNew(&request, caller->server, model, -1));
  const int64_t shape[1] = {1};
  CHECK(TRITONSERVER_InferenceRequestSetId(request, "inner"));
  CHECK(TRITONSERVER_InferenceRequestAddInput(request, "IN", TRITONSERVER_TYPE_INT32, shape, 1));
  // Two parts, to show that they are joined.
  CHECK(TRITONSERVER_InferenceRequestAppendInputData(request, "IN", &value, 1,
                                                     TRITONSERVER_MEMORY_CPU, 0));
  CHECK(TRITONSERVER_InferenceRequestAppendInputData(request, "IN", (char*)&value + 1, 3,
                                                     TRITONSERVER_MEMORY_CPU, 0));
  CHECK(TRITONSERVER_InferenceRequestAddRequestedOutput(request, "OUT"));
  CHECK(TRITONSERVER_InferenceRequestSetIntParameter(request, "depth", 1));
  CHECK(TRITONSERVER_InferenceRequestSetReleaseCallback(request, released, &result));
  CHECK(TRITONSERVER_InferenceRequestSetResponseCallback(request, caller->allocator, NULL,
                                                         responded, &result));
  CHECK(TRITONSERVER_ServerInferAsync(caller->server, request, NULL));
  pthread_mutex_lock(&result.mutex);
  while (!result.responded || !result.released) pthread_cond_wait(&result.changed, &result.mutex);
  pthread_mutex_unlock(&result.mutex);
  *result_value = result.value;
  return result.error;
}

static TRITONSERVER_Error* load_late(TRITONSERVER_Server* server, int32_t* ready) {
  bool before = true, after = false;
  CHECK(TRITONSERVER_ServerModelIsReady(server, "late", -1, &before));
  CHECK(TRITONSERVER_ServerLoadModel(server, "late"));
  CHECK(TRITONSERVER_ServerModelIsReady(server, "late", -1, &after));
  uint32_t flags = 0;
  void* unused;
  CHECK(TRITONSERVER_ServerModelTransactionProperties(server, "late", -1, &flags, &unused));
  *ready = (before ? 100 : 0) + (after ? 10 : 0) + (int32_t)flags;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  struct Model* caller = calloc(1, sizeof *caller);
  CHECK(TRITONBACKEND_ModelSetState(model, caller));
  CHECK(TRITONBACKEND_ModelServer(model, &caller->server));
  CHECK(TRITONSERVER_ResponseAllocatorNew(&caller->allocator, allocate, release, NULL));
  CHECK(TRITONSERVER_MetricFamilyNew(&caller->family, TRITONSERVER_METRIC_KIND_COUNTER,
                                     "caller_calls", "calls of other models"));
  TRITONSERVER_Parameter* parameter =
      TRITONSERVER_ParameterNew("kind", TRITONSERVER_PARAMETER_STRING, "double");
  const TRITONSERVER_Parameter* labels[] = {parameter};
  TRITONSERVER_Error* error = TRITONSERVER_MetricNew(&caller->metric, caller->family, labels, 1);
  TRITONSERVER_ParameterDelete(parameter);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  void* state;
  CHECK(TRITONBACKEND_ModelState(model, &state));
  struct Model* caller = state;
  CHECK(TRITONSERVER_MetricDelete(caller->metric));
  CHECK(TRITONSERVER_MetricFamilyDelete(caller->family));
  CHECK(TRITONSERVER_ResponseAllocatorDelete(caller->allocator));
  free(caller);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  TRITONBACKEND_Model* model;
  CHECK(TRITONBACKEND_ModelInstanceModel(instance, &model));
  void* state;
  CHECK(TRITONBACKEND_ModelState(model, &state));
  struct Model* caller = state;
  for (uint32_t i = 0; i < request_count; ++i) {
    int32_t value = 0, result = 0;
    TRITONSERVER_Error* error = read_int(requests[i], "IN", &value);
    if (error == NULL) {
      error = value == -2
                  ? load_late(caller->server, &result)
                  : call(caller, value == -1 ? "missing" : "double", value, &result);
    }
    IGNORE(TRITONSERVER_MetricIncrement(caller->metric, 1));
    double calls = 0;
    if (error == NULL) error = TRITONSERVER_MetricValue(caller->metric, &calls);
    TRITONBACKEND_Response* response;
    IGNORE(TRITONBACKEND_ResponseNew(&response, requests[i]));
    if (error == NULL) IGNORE(add_int(response, "OUT", result, 1));
    IGNORE(TRITONBACKEND_ResponseSetDoubleParameter(response, "calls", calls));
    IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, error));
    TRITONSERVER_ErrorDelete(error);
    IGNORE(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  return NULL;
}
