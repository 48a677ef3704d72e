// SPDX-License-Identifier: Apache-2.0
// What this CPU and operating system can run; decides which build of the kernels is called.
#pragma once

#include <string>

namespace tutti {

// Levels of the x86-64 psABI. On other architectures only kV2, which there means the baseline build.
enum class IsaLevel { kV2, kV3, kV4 };

struct CpuFeatures {
  bool x86_64_v2 = false;
  bool x86_64_v3 = false;  // AVX2, FMA, F16C, BMI; registers saved by the operating system
  bool x86_64_v4 = false;  // AVX-512 F, BW, CD, DQ, VL; registers saved by the operating system
  bool avx_vnni = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_bf16 = false;
  bool amx_int8 = false;
  std::string vendor;
  std::string model_name;
};

// Read once.
const CpuFeatures& cpu_features();
const char* name(IsaLevel level) noexcept;
// The highest level that CPU and operating system support.
IsaLevel detected_isa();
// The level whose kernels run: the detected one, capped by TUTTI_ISA=v2|v3|v4 (ValueError if it is anything
// else; asking for more than there is gives a warning). Read once.
IsaLevel active_isa();
// "x86-64-v4 avx512_bf16 amx_bf16 ...", for `tutti env`.
std::string cpu_features_text();

}  // namespace tutti
