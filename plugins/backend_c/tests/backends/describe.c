// Answers with parameters that describe the instance that executes: OUT is always 1.
#include "common.h"

static TRITONSERVER_Error* add_profiles(TRITONBACKEND_ModelInstance* instance,
                                        TRITONBACKEND_Response* response) {
  uint32_t count;
  CHECK(TRITONBACKEND_ModelInstanceProfileCount(instance, &count));
  CHECK(TRITONBACKEND_ResponseSetIntParameter(response, "profiles", count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* name;
    char key[32];
    CHECK(TRITONBACKEND_ModelInstanceProfileName(instance, i, &name));
    snprintf(key, sizeof key, "profile %u", i);
    CHECK(TRITONBACKEND_ResponseSetStringParameter(response, key, name));
  }
  const char* missing;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceProfileName(instance, count, &missing);
  CHECK(TRITONBACKEND_ResponseSetStringParameter(response, "profile that does not exist",
                                                 TRITONSERVER_ErrorMessage(error)));
  TRITONSERVER_ErrorDelete(error);
  return NULL;
}

static TRITONSERVER_Error* add_secondary_devices(TRITONBACKEND_ModelInstance* instance,
                                                 TRITONBACKEND_Response* response) {
  uint32_t count;
  CHECK(TRITONBACKEND_ModelInstanceSecondaryDeviceCount(instance, &count));
  CHECK(TRITONBACKEND_ResponseSetIntParameter(response, "secondary devices", count));
  const char* kind;
  int64_t number;
  for (uint32_t i = 0; i < count; ++i) {
    char key[32], text[64];
    CHECK(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, i, &kind, &number));
    snprintf(key, sizeof key, "secondary device %u", i);
    snprintf(text, sizeof text, "%s %ld", kind, (long)number);
    CHECK(TRITONBACKEND_ResponseSetStringParameter(response, key, text));
  }
  TRITONSERVER_Error* error =
      TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, count, &kind, &number);
  CHECK(TRITONBACKEND_ResponseSetStringParameter(response, "device that does not exist",
                                                 TRITONSERVER_ErrorMessage(error)));
  TRITONSERVER_ErrorDelete(error);
  return NULL;
}

static TRITONSERVER_Error* add_message(TRITONBACKEND_Response* response, const char* key,
                                       TRITONSERVER_Message* message) {
  const char* text;
  size_t size;
  CHECK(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
  char* copy = strndup(text, size);
  TRITONSERVER_Error* error = TRITONBACKEND_ResponseSetStringParameter(response, key, copy);
  free(copy);
  return error;
}

static TRITONSERVER_Error* add_model(TRITONBACKEND_ModelInstance* instance,
                                     TRITONBACKEND_Response* response) {
  TRITONBACKEND_Model* model;
  CHECK(TRITONBACKEND_ModelInstanceModel(instance, &model));
  const char* name;
  uint64_t version;
  CHECK(TRITONBACKEND_ModelName(model, &name));
  CHECK(TRITONBACKEND_ModelVersion(model, &version));
  CHECK(TRITONBACKEND_ResponseSetStringParameter(response, "model", name));
  CHECK(TRITONBACKEND_ResponseSetIntParameter(response, "version", (int64_t)version));
  TRITONBACKEND_ArtifactType type;
  const char* location;
  CHECK(TRITONBACKEND_ModelRepository(model, &type, &location));
  const char* folder = strrchr(location, '/');
  CHECK(TRITONBACKEND_ResponseSetIntParameter(response, "artifact", type));
  return TRITONBACKEND_ResponseSetStringParameter(response, "folder", folder);
}

static TRITONSERVER_Error* respond(TRITONBACKEND_ModelInstance* instance,
                                   TRITONBACKEND_Request* request) {
  TRITONBACKEND_Response* response;
  CHECK(TRITONBACKEND_ResponseNew(&response, request));
  const char* name;
  TRITONSERVER_InstanceGroupKind kind;
  int32_t device;
  bool passive;
  TRITONSERVER_Message* policy;
  CHECK(TRITONBACKEND_ModelInstanceName(instance, &name));
  CHECK(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  CHECK(TRITONBACKEND_ModelInstanceDeviceId(instance, &device));
  CHECK(TRITONBACKEND_ModelInstanceIsPassive(instance, &passive));
  CHECK(TRITONBACKEND_ModelInstanceHostPolicy(instance, &policy));
  CHECK(TRITONBACKEND_ResponseSetStringParameter(response, "name", name));
  CHECK(TRITONBACKEND_ResponseSetStringParameter(response, "kind",
                                                 TRITONSERVER_InstanceGroupKindString(kind)));
  CHECK(TRITONBACKEND_ResponseSetIntParameter(response, "device", device));
  CHECK(TRITONBACKEND_ResponseSetBoolParameter(response, "passive", passive));
  CHECK(add_message(response, "host policy", policy));
  CHECK(add_profiles(instance, response));
  CHECK(add_secondary_devices(instance, response));
  CHECK(add_model(instance, response));
  CHECK(add_int(response, "OUT", 1, 1));
  return TRITONBACKEND_ResponseSend(response, FINAL, NULL);
}

TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(
    TRITONBACKEND_Backend* backend, TRITONBACKEND_BackendAttribute* attributes) {
  (void)backend;
  const uint64_t devices[] = {0, 1};
  CHECK(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
      attributes, TRITONSERVER_INSTANCEGROUPKIND_GPU, 3, devices, 2));
  CHECK(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
      attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 2, NULL, 0));
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  const char* name;
  bool passive;
  CHECK(TRITONBACKEND_ModelInstanceName(instance, &name));
  CHECK(TRITONBACKEND_ModelInstanceIsPassive(instance, &passive));
  char line[256];
  snprintf(line, sizeof line, "instance %s is %s", name, passive ? "passive" : "active");
  log_line(line);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  const uint64_t start = now_ns();
  for (uint32_t i = 0; i < request_count; ++i) {
    TRITONSERVER_Error* error = respond(instance, requests[i]);
    if (error != NULL) log_line(TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
    const uint64_t end = now_ns();
    IGNORE(TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], true, start, start,
                                                       end, end));
    IGNORE(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  const uint64_t end = now_ns();
  return TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, start, start, end, end);
}
