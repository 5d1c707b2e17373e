// Repository agents: libtritonrepoagent_NAME.so.
#include <cerrno>
#include <filesystem>

#include "edge.h"
#include "triton/core/tritonrepoagent.h"

using tritonpy::error;
using tritonpy::find;
using tritonpy::guarded;
using tritonpy::status;

struct TRITONREPOAGENT_Agent {
  using AgentFn = TRITONSERVER_Error* (*)(TRITONREPOAGENT_Agent*);
  using ModelFn = TRITONSERVER_Error* (*)(TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel*);
  AgentFn initialize = nullptr;
  AgentFn finalize = nullptr;
  ModelFn model_initialize = nullptr;
  ModelFn model_finalize = nullptr;
  TRITONSERVER_Error* (*act)(TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel*,
                             TRITONREPOAGENT_ActionType) = nullptr;
  void* state = nullptr;
};

struct TRITONREPOAGENT_AgentModel {
  TRITONREPOAGENT_Agent* agent = nullptr;
  TRITONREPOAGENT_ArtifactType type = TRITONREPOAGENT_ARTIFACT_FILESYSTEM;
  std::string location;
  std::string acquired;  // a folder of the server's, or empty
  std::string config;    // JSON
  std::vector<std::pair<std::string, std::string>> parameters;
  int64_t action = -1;
  void* state = nullptr;
};

namespace {

const char* const kActions[] = {
    "TRITONREPOAGENT_ACTION_LOAD", "TRITONREPOAGENT_ACTION_LOAD_COMPLETE",
    "TRITONREPOAGENT_ACTION_LOAD_FAIL", "TRITONREPOAGENT_ACTION_UNLOAD",
    "TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE"};

TRITONSERVER_Error* delete_acquired(TRITONREPOAGENT_AgentModel* model) {
  std::error_code failure;
  std::filesystem::remove_all(model->acquired, failure);
  const std::string folder = std::move(model->acquired);
  model->acquired.clear();
  if (!failure) return nullptr;
  return error(TRITONSERVER_ERROR_INTERNAL,
               "Failed to delete previously acquired location '" + folder + "': " +
                   failure.message());
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONREPOAGENT_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONREPOAGENT_API_VERSION_MAJOR;
  *minor = TRITONREPOAGENT_API_VERSION_MINOR;
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model,
    TRITONREPOAGENT_ArtifactType* artifact_type, const char** location) {
  *artifact_type = model->type;
  *location = model->location.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char** location) {
  if (artifact_type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM) {
    return error(TRITONSERVER_ERROR_INVALID_ARG,
                 "Unexpected artifact type, expects 'TRITONREPOAGENT_ARTIFACT_FILESYSTEM'");
  }
  if (model->acquired.empty()) {
    const char* root = getenv("TMPDIR");
    std::string folder = std::string(root && *root ? root : "/tmp") + "/tritonpy-agent-XXXXXX";
    if (!mkdtemp(folder.data())) {
      return error(TRITONSERVER_ERROR_INTERNAL,
                   "Failed to create local temp folder: " + folder +
                       ", errno:" + strerror(errno));
    }
    model->acquired = folder;
  }
  *location = model->acquired.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model, const char*) {
  if (model->acquired.empty()) {
    return error(TRITONSERVER_ERROR_UNAVAILABLE, "No mutable location to be deleted");
  }
  return delete_acquired(model);
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char* location) {
  if (model->action != TRITONREPOAGENT_ACTION_LOAD) {
    return error(
        TRITONSERVER_ERROR_INVALID_ARG,
        std::string("location can only be updated during TRITONREPOAGENT_ACTION_LOAD, current "
                    "action type is ") +
            (model->action < 0 ? "not set" : kActions[model->action]));
  }
  if (artifact_type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM) {
    return error(TRITONSERVER_ERROR_UNSUPPORTED,
                 "a repository agent can set a local folder only, as "
                 "TRITONREPOAGENT_ARTIFACT_FILESYSTEM");
  }
  model->type = artifact_type;
  model->location = location;
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent*,
                                                        TRITONREPOAGENT_AgentModel* model,
                                                        uint32_t* count) {
  *count = static_cast<uint32_t>(model->parameters.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent*,
                                                   TRITONREPOAGENT_AgentModel* model,
                                                   const uint32_t index,
                                                   const char** parameter_name,
                                                   const char** parameter_value) {
  if (index >= model->parameters.size()) {
    return error(TRITONSERVER_ERROR_INVALID_ARG, "index out of range for model parameters");
  }
  *parameter_name = model->parameters[index].first.c_str();
  *parameter_value = model->parameters[index].second.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent*,
                                                TRITONREPOAGENT_AgentModel* model,
                                                const uint32_t config_version,
                                                TRITONSERVER_Message** model_config) {
  if (config_version != 1) {
    return error(TRITONSERVER_ERROR_INVALID_ARG,
                 "model configuration version " + std::to_string(config_version) +
                     " not supported, supported versions are: 1");
  }
  *model_config = new TRITONSERVER_Message{model->config};
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel* model, void** state) {
  *state = model->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel* model,
                                                  void* state) {
  model->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_State(TRITONREPOAGENT_Agent* agent, void** state) {
  *state = agent->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent* agent, void* state) {
  agent->state = state;
  return nullptr;
}

// Load a library and initialize its agent.
TRITON_HOST int64_t tritonpy_agent_open(const char* path, void** result) {
  void* library = nullptr;
  if (TRITONSERVER_Error* failure = tritonpy::open_library(path, &library)) return status(failure);
  auto agent = std::make_unique<TRITONREPOAGENT_Agent>();
  find(library, "TRITONREPOAGENT_Initialize", &agent->initialize);
  find(library, "TRITONREPOAGENT_Finalize", &agent->finalize);
  find(library, "TRITONREPOAGENT_ModelInitialize", &agent->model_initialize);
  find(library, "TRITONREPOAGENT_ModelFinalize", &agent->model_finalize);
  find(library, "TRITONREPOAGENT_ModelAction", &agent->act);
  if (!agent->act) {
    return status(error(
        TRITONSERVER_ERROR_NOT_FOUND,
        std::string("unable to find required entrypoint 'TRITONREPOAGENT_ModelAction' in shared "
                    "library: ") +
            path));
  }
  if (agent->initialize) {
    const int64_t code = status(
        guarded("TRITONREPOAGENT_Initialize", [&] { return agent->initialize(agent.get()); }));
    if (code >= 0) return code;
  }
  *result = agent.release();
  return -1;
}

TRITON_HOST int64_t tritonpy_agent_close(void* handle) {
  std::unique_ptr<TRITONREPOAGENT_Agent> agent(static_cast<TRITONREPOAGENT_Agent*>(handle));
  if (!agent->finalize) return -1;
  return status(
      guarded("TRITONREPOAGENT_Finalize", [&] { return agent->finalize(agent.get()); }));
}

// A model of an agent. Words: number of parameters; name and value of each.
TRITON_HOST int64_t tritonpy_agent_model_open(void* handle, const char* location,
                                              const char* config, const int64_t* words,
                                              const char* text, void** result) {
  auto* agent = static_cast<TRITONREPOAGENT_Agent*>(handle);
  auto model = std::make_unique<TRITONREPOAGENT_AgentModel>();
  model->agent = agent;
  model->location = location;
  model->config = config;
  tritonpy::Reader reader(words, text);
  for (int64_t left = reader.word(); left > 0; --left) {
    std::string name = reader.text();
    model->parameters.emplace_back(std::move(name), reader.text());
  }
  if (agent->model_initialize) {
    const int64_t code = status(guarded("TRITONREPOAGENT_ModelInitialize", [&] {
      return agent->model_initialize(agent, model.get());
    }));
    if (code >= 0) return code;
  }
  *result = model.release();
  return -1;
}

TRITON_HOST int64_t tritonpy_agent_model_act(void* handle, int64_t action) {
  auto* model = static_cast<TRITONREPOAGENT_AgentModel*>(handle);
  model->action = action;
  return status(guarded("TRITONREPOAGENT_ModelAction", [&] {
    return model->agent->act(model->agent, model,
                             static_cast<TRITONREPOAGENT_ActionType>(action));
  }));
}

// The folder of the model, which the agent may have replaced.
TRITON_HOST const char* tritonpy_agent_model_location(void* handle) {
  return static_cast<TRITONREPOAGENT_AgentModel*>(handle)->location.c_str();
}

TRITON_HOST int64_t tritonpy_agent_model_close(void* handle) {
  std::unique_ptr<TRITONREPOAGENT_AgentModel> model(
      static_cast<TRITONREPOAGENT_AgentModel*>(handle));
  TRITONSERVER_Error* failure = nullptr;
  if (model->agent->model_finalize) {
    failure = guarded("TRITONREPOAGENT_ModelFinalize", [&] {
      return model->agent->model_finalize(model->agent, model.get());
    });
  }
  if (!model->acquired.empty()) {
    TRITONSERVER_Error* second = delete_acquired(model.get());
    if (failure) {
      TRITONSERVER_ErrorDelete(second);
    } else {
      failure = second;
    }
  }
  return status(failure);
}

}  // extern "C"
