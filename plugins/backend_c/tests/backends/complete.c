// Completes the configuration of its model: IN and OUT, up to 4 requests in a batch.
#include "common.h"

static const char* const completed =
    "{\"name\":\"%s\",\"backend\":\"complete\",\"max_batch_size\":4,"
    "\"input\":[{\"name\":\"IN\",\"data_type\":\"TYPE_INT32\",\"dims\":[1]}],"
    "\"output\":[{\"name\":\"OUT\",\"data_type\":\"TYPE_INT32\",\"dims\":[1]}]}";

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  bool allowed = false;
  CHECK(TRITONBACKEND_ModelAutoCompleteConfig(model, &allowed));
  if (!allowed) return NULL;
  const char* name;
  CHECK(TRITONBACKEND_ModelName(model, &name));
  if (strcmp(name, "crashing") == 0) abort();
  if (strcmp(name, "refused") == 0) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, "the weights are missing");
  }
  char text[512];
  snprintf(text, sizeof text, completed, name);
  TRITONSERVER_Message* message;
  CHECK(TRITONSERVER_MessageNewFromSerializedJson(&message, text, strlen(text)));
  CHECK(TRITONBACKEND_ModelSetConfig(model, 1, message));
  return TRITONSERVER_MessageDelete(message);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  (void)instance;
  for (uint32_t i = 0; i < request_count; ++i) {
    IGNORE(answer_int(requests[i], (int32_t)request_count, 2));
    IGNORE(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  return NULL;
}
