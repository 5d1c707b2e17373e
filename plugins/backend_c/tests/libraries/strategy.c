// Limits the sum of IN in a batch to the model's parameter MOST. A request with IN below 0 is an
// error; the sum of a batch is logged when the batch ends.
#include "../backends/common.h"

typedef struct {
  int most;
  int sum;
} Batch;

TRITONSERVER_Error* TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher** batcher,
                                                         TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* config;
  CHECK(TRITONBACKEND_ModelConfig(model, 1, &config));
  const char* text;
  size_t size;
  CHECK(TRITONSERVER_MessageSerializeToJson(config, &text, &size));
  const char* found = strstr(text, "\"MOST\"");
  const char* value = found == NULL ? NULL : strstr(found, "string_value");
  const int most = value == NULL ? 0 : atoi(strpbrk(value, "0123456789"));
  IGNORE(TRITONSERVER_MessageDelete(config));
  if (value == NULL) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "MOST is missing");
  }
  const char* name;
  uint64_t version;
  CHECK(TRITONBACKEND_ModelName(model, &name));
  CHECK(TRITONBACKEND_ModelVersion(model, &version));
  char line[80];
  snprintf(line, sizeof line, "strategy of %s %d: at most %d", name, (int)version, most);
  log_line(line);
  Batch* empty = (Batch*)malloc(sizeof(Batch));
  *empty = (Batch){most, 0};
  *batcher = (TRITONBACKEND_Batcher*)empty;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher* batcher) {
  log_line("the batcher ends");
  free(batcher);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher* batcher,
                                                       void** userp) {
  *userp = malloc(sizeof(Batch));
  memcpy(*userp, batcher, sizeof(Batch));
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request* request,
                                                           void* userp, bool* should_include) {
  int32_t value = 0;
  CHECK(read_int(request, "IN", &value));
  if (value < 0) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "IN is below 0");
  }
  Batch* batch = (Batch*)userp;
  *should_include = batch->sum + value <= batch->most;
  if (*should_include) batch->sum += value;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatchFinalize(void* userp) {
  char line[40];
  snprintf(line, sizeof line, "a batch of %d", ((Batch*)userp)->sum);
  log_line(line);
  free(userp);
  return NULL;
}
