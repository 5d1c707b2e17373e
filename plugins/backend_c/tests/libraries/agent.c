// Copies the model to a folder of the server's and serves it from there. It adds a line to the file
// in its parameter "log" for everything it is called for. With the parameter "refuse" a load fails.
#include "../backends/common.h"
#include "triton/core/tritonrepoagent.h"

static int agents = 0;

static const char* parameter(TRITONREPOAGENT_Agent* agent, TRITONREPOAGENT_AgentModel* model,
                             const char* name) {
  uint32_t count = 0;
  IGNORE(TRITONREPOAGENT_ModelParameterCount(agent, model, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char *key, *value;
    IGNORE(TRITONREPOAGENT_ModelParameter(agent, model, i, &key, &value));
    if (strcmp(key, name) == 0) return value;
  }
  return NULL;
}

static void note(TRITONREPOAGENT_Agent* agent, TRITONREPOAGENT_AgentModel* model,
                 const char* text) {
  const char* path = parameter(agent, model, "log");
  FILE* file = path == NULL ? NULL : fopen(path, "a");
  if (file == NULL) return;
  fprintf(file, "%s\n", text);
  fclose(file);
}

TRITONSERVER_Error* TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent* agent) {
  ++agents;
  return TRITONREPOAGENT_SetState(agent, &agents);
}

TRITONSERVER_Error* TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent* agent) {
  void* state;
  CHECK(TRITONREPOAGENT_State(agent, &state));
  --*(int*)state;
  return NULL;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent* agent,
                                                    TRITONREPOAGENT_AgentModel* model) {
  char line[20];
  snprintf(line, sizeof line, "agents %d", agents);
  note(agent, model, line);
  return TRITONREPOAGENT_ModelSetState(model, strdup("model"));
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent* agent,
                                                  TRITONREPOAGENT_AgentModel* model) {
  void* state;
  CHECK(TRITONREPOAGENT_ModelState(model, &state));
  note(agent, model, (const char*)state);
  free(state);
  return NULL;
}

static TRITONSERVER_Error* load(TRITONREPOAGENT_Agent* agent, TRITONREPOAGENT_AgentModel* model) {
  if (parameter(agent, model, "refuse") != NULL) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "the agent refuses the model");
  }
  TRITONSERVER_Message* config;
  CHECK(TRITONREPOAGENT_ModelConfig(agent, model, 1, &config));
  const char* text;
  size_t size;
  CHECK(TRITONSERVER_MessageSerializeToJson(config, &text, &size));
  note(agent, model, strstr(text, "\"name\"") == NULL ? "no name" : "a configuration");
  IGNORE(TRITONSERVER_MessageDelete(config));
  TRITONREPOAGENT_ArtifactType type;
  const char *location, *acquired;
  CHECK(TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &location));
  CHECK(TRITONREPOAGENT_ModelRepositoryLocationAcquire(
      agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &acquired));
  char command[1024];
  snprintf(command, sizeof command, "cp -r '%s/.' '%s/'", location, acquired);
  if (system(command) != 0) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "the model cannot be copied");
  }
  note(agent, model, acquired);
  return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM,
                                               acquired);
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent* agent,
                                                TRITONREPOAGENT_AgentModel* model,
                                                const TRITONREPOAGENT_ActionType action_type) {
  static const char* const kNames[] = {"LOAD", "LOAD_COMPLETE", "LOAD_FAIL", "UNLOAD",
                                       "UNLOAD_COMPLETE"};
  note(agent, model, kNames[action_type]);
  if (action_type == TRITONREPOAGENT_ACTION_LOAD) return load(agent, model);
  // Only a load may change the folder.
  TRITONSERVER_Error* error = TRITONREPOAGENT_ModelRepositoryUpdate(
      agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, "/");
  note(agent, model, error == NULL ? "changed" : TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  return NULL;
}
