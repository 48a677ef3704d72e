// SPDX-License-Identifier: Apache-2.0
#include "backend/plugin.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string_view>

#include "core/environment_variables.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"
#include "tutti/core/trace.hpp"

namespace tutti::backend {

namespace {

constexpr const char* kVariable = "TUTTI_CUDA_PLUGIN";
constexpr const char* kEntry = "tutti_backend_v1";

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

// The folder of the shared object, or of the program, that this function is linked into; empty if unknown.
std::string library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  // In a static program dli_fname is argv[0], which need not be a path: then program_folder() finds the
  // place.
  const std::string path = info.dli_fname;
  return path.find('/') == std::string::npos ? std::string() : folder_of(path);
}

std::string program_folder() {
  char buffer[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
  return length > 0 ? folder_of(std::string(buffer, static_cast<std::size_t>(length))) : std::string();
}

void log_of_host(int32_t level, const char* text) {
  logging::write(static_cast<logging::Level>(std::clamp(level, 0, 3)), text != nullptr ? text : "");
}
int64_t now_of_host() { return trace::now_ns(); }
int32_t trace_enabled_of_host() { return trace::enabled() ? 1 : 0; }

constexpr tutti_host_services kHost = {TUTTI_BACKEND_VERSION, sizeof(tutti_host_services), log_of_host,
                                       now_of_host, trace_enabled_of_host};

// What is wrong with the table; empty if nothing. The first two fields are read first: they stay in place in
// all versions, the others need not.
std::string fault_of(const tutti_backend& table, const tutti_backend& expected) {
  if (table.version != expected.version) {
    return concat("its backend interface has version ", table.version, ", this library needs ",
                  expected.version);
  }
  if (table.struct_size != expected.struct_size) {
    return concat("its backend table has ", table.struct_size, " bytes, this library needs ",
                  expected.struct_size);
  }
  const std::string_view build = table.build_id != nullptr ? table.build_id : "";
  if (build != expected.build_id) {
    return concat("it is of build \"", build, "\", this library of build \"", expected.build_id, "\"");
  }
  if (table.kernels.pointwise_count != expected.kernels.pointwise_count) {
    return concat("it has ", table.kernels.pointwise_count, " pointwise kernels, this library needs ",
                  expected.kernels.pointwise_count);
  }
  return {};
}

}  // namespace

std::vector<std::string> cuda_plugin_candidates() {
  const std::string wanted = environment_text(kVariable).value_or("cuda");
  if (wanted.find('/') != std::string::npos) return {wanted};
  std::vector<std::string> candidates;
  for (const std::string& folder : {library_folder(), program_folder()}) {
    if (folder.empty()) continue;
    std::string path = concat(folder, "/libtutti_", wanted, ".so");
    if (std::find(candidates.begin(), candidates.end(), path) == candidates.end())
      candidates.push_back(std::move(path));
  }
  return candidates;
}

const tutti_backend* open_first_plugin(const std::vector<std::string>& candidates, std::string& reason) {
  reason = "no CUDA plugin: there is no file";
  const char* separator = " ";
  for (const std::string& path : candidates) {
    if (access(path.c_str(), F_OK) == 0) return open_plugin(path, *tutti_cpu_backend(), reason);
    reason += concat(separator, path);
    separator = ", nor ";
  }
  const std::optional<std::string> wanted = environment_text(kVariable);
  reason += wanted.has_value() ? concat(" (", kVariable, " is \"", *wanted, "\")")
                               : concat(" (", kVariable, " may name one)");
  return nullptr;
}

const tutti_backend* open_plugin(const std::string& path, const tutti_backend& expected,
                                 std::string& reason) {
  // Never closed once it is in use: its functions are called until the last static destructor.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    reason = concat(path, " can't be opened: ", text != nullptr ? text : "no further text");
    return nullptr;
  }
  const auto refuse = [&](const std::string& why) {
    reason = concat(path, " can't be used: ", why);
    dlclose(library);
    return nullptr;
  };
  const auto entry = reinterpret_cast<tutti_backend_entry>(dlsym(library, kEntry));
  if (entry == nullptr) return refuse(concat("it does not export ", kEntry));
  const tutti_backend* table = entry(&kHost);
  if (table == nullptr) return refuse(concat(kEntry, " returned no table"));
  if (const std::string fault = fault_of(*table, expected); !fault.empty()) return refuse(fault);
  return table;
}

}  // namespace tutti::backend
