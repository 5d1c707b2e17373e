// Metrics of backends. Families and metrics are made by the server, which checks names and labels;
// changes are queued, so that counting a request costs no wait.
#include "objects.h"

using tritonpy::error;
using tritonpy::Event;
using tritonpy::Host;
using tritonpy::json_text;

struct TRITONSERVER_MetricFamily {
  TRITONSERVER_MetricKind kind;
  int64_t number;
};

struct TRITONSERVER_Metric {
  TRITONSERVER_MetricKind kind;
  int64_t number;
};

struct TRITONSERVER_MetricArgs {
  bool histogram = false;
  std::vector<double> buckets;
};

namespace {

enum Change : int64_t { increment = 0, set, observe };
const char* const kKinds[] = {"TRITONSERVER_METRIC_KIND_COUNTER", "TRITONSERVER_METRIC_KIND_GAUGE",
                              "TRITONSERVER_METRIC_KIND_HISTOGRAM"};

TRITONSERVER_Error* unsupported(TRITONSERVER_MetricKind kind, const char* verb) {
  return error(TRITONSERVER_ERROR_UNSUPPORTED,
               std::string(kKinds[kind]) + " does not support " + verb);
}

TRITONSERVER_Error* change(TRITONSERVER_Metric* metric, Change what, double value) {
  Event event{Event::metric};
  event.tag = metric->number;
  event.flags = what;
  event.value = value;
  Host::get().push(std::move(event));
  return nullptr;
}

TRITONSERVER_Error* query_number(const char* verb, const std::string& arguments, double* number) {
  std::string result;
  if (TRITONSERVER_Error* failure = Host::get().query(verb, arguments, &result)) return failure;
  *number = std::stod(result);
  return nullptr;
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily** family,
                                                 TRITONSERVER_MetricKind kind, const char* name,
                                                 const char* description) {
  double number = 0;
  if (TRITONSERVER_Error* failure =
          query_number("metric_family",
                     "{\"kind\":" + std::to_string(kind) + ",\"name\":" + json_text(name) +
                         ",\"description\":" + json_text(description) + "}",
                     &number)) {
    return failure;
  }
  *family = new TRITONSERVER_MetricFamily{kind, static_cast<int64_t>(number)};
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily* family) {
  if (!family) return nullptr;
  TRITONSERVER_Error* failure = Host::get().query(
      "drop_metric_family", "{\"number\":" + std::to_string(family->number) + "}", nullptr);
  delete family;
  return failure;
}

TRITONSERVER_Error* TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily* family,
                                                     TRITONSERVER_MetricKind* kind) {
  *kind = family->kind;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs** args) {
  *args = new TRITONSERVER_MetricArgs;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs* args,
                                                        const double* buckets,
                                                        uint64_t buckets_count) {
  args->histogram = true;
  args->buckets.assign(buckets, buckets + buckets_count);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs* args) {
  delete args;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric** metric,
                                                   TRITONSERVER_MetricFamily* family,
                                                   const TRITONSERVER_Parameter** labels,
                                                   uint64_t label_count,
                                                   const TRITONSERVER_MetricArgs* args) {
  std::string buckets = "null";
  if (args && args->histogram) {
    buckets = "[";
    for (size_t i = 0; i < args->buckets.size(); ++i) {
      char digits[32];
      snprintf(digits, sizeof digits, "%s%.17g", i ? "," : "", args->buckets[i]);
      buckets += digits;
    }
    buckets += "]";
  }
  double number = 0;
  if (TRITONSERVER_Error* failure = query_number(
          "metric",
          "{\"family\":" + std::to_string(family->number) +
              ",\"labels\":" + tritonpy::json_parameters(labels, label_count) +
              ",\"buckets\":" + buckets + "}",
          &number)) {
    return failure;
  }
  *metric = new TRITONSERVER_Metric{family->kind, static_cast<int64_t>(number)};
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric** metric,
                                           TRITONSERVER_MetricFamily* family,
                                           const TRITONSERVER_Parameter** labels,
                                           uint64_t label_count) {
  return TRITONSERVER_MetricNewWithArgs(metric, family, labels, label_count, nullptr);
}

TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric) {
  if (!metric) return nullptr;
  TRITONSERVER_Error* failure = Host::get().query(
      "drop_metric", "{\"number\":" + std::to_string(metric->number) + "}", nullptr);
  delete metric;
  return failure;
}

TRITONSERVER_Error* TRITONSERVER_MetricValue(TRITONSERVER_Metric* metric, double* value) {
  if (metric->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM) return unsupported(metric->kind, "Value");
  return query_number("metric_value", "{\"number\":" + std::to_string(metric->number) + "}", value);
}

TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value) {
  if (metric->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM) {
    return unsupported(metric->kind, "Increment");
  }
  if (metric->kind == TRITONSERVER_METRIC_KIND_COUNTER && value < 0) {
    return error(TRITONSERVER_ERROR_INVALID_ARG,
                 "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by "
                 "non-negative values.");
  }
  return change(metric, increment, value);
}

TRITONSERVER_Error* TRITONSERVER_MetricSet(TRITONSERVER_Metric* metric, double value) {
  if (metric->kind != TRITONSERVER_METRIC_KIND_GAUGE) return unsupported(metric->kind, "Set");
  return change(metric, set, value);
}

TRITONSERVER_Error* TRITONSERVER_MetricObserve(TRITONSERVER_Metric* metric, double value) {
  if (metric->kind != TRITONSERVER_METRIC_KIND_HISTOGRAM) {
    return unsupported(metric->kind, "Observe");
  }
  return change(metric, observe, value);
}

TRITONSERVER_Error* TRITONSERVER_GetMetricKind(TRITONSERVER_Metric* metric,
                                               TRITONSERVER_MetricKind* kind) {
  *kind = metric->kind;
  return nullptr;
}

}  // extern "C"
